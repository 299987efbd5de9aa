#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Installs the Debian packages named in the given lists, those that are missing only; says nothing when all are there.
#
#   sh .ci/packages.sh [--dry-run] LIST...
#
# --dry-run says what would be done and does nothing. ATP_PACKAGES=skip in the environment believes that everything is
# there: for other distributions, and for tools that came another way.
set -eu

dry_run=false
if [ "${1:-}" = --dry-run ]; then
    dry_run=true
    shift
fi
if [ $# -eq 0 ]; then
    echo "usage: sh .ci/packages.sh [--dry-run] LIST..." >&2
    exit 2
fi
if [ "${ATP_PACKAGES:-}" = skip ]; then
    exit 0
fi

say() {
    printf 'packages: %s\n' "$*" >&2
}

wanted=$(sed -e 's/#.*//' "$@" | tr -s ' \t\n' ' ')
wanted=${wanted# }
wanted=${wanted% }

if ! command -v dpkg-query >/dev/null; then
    absent=
    for tool in cc meson ninja pkg-config; do
        command -v "$tool" >/dev/null || absent="$absent $tool"
    done
    say "this is not a Debian system (no dpkg-query); the packages are called there: $wanted"
    if [ -n "$absent" ]; then
        say "not found:$absent. Install them, and the libraries above, with your own package manager."
        exit 1
    fi
    say "going on with what is installed"
    exit 0
fi

missing=
for package in $wanted; do
    # shellcheck disable=SC2016 # a format of dpkg-query, not of the shell
    if ! dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -q '^installed$'; then
        missing="$missing $package"
    fi
done
if [ -z "$missing" ]; then
    exit 0
fi
missing=${missing# }

by_hand="apt-get update && apt-get install --no-install-recommends $missing"
if ! command -v apt-get >/dev/null; then
    say "missing: $missing; there is no apt-get here to install them with"
    exit 1
fi
if [ "$(id -u)" -eq 0 ]; then
    as_root=
elif command -v sudo >/dev/null; then
    as_root=sudo
else
    say "missing: $missing; installing them needs root, or sudo. As root: $by_hand"
    exit 1
fi
if $dry_run; then
    say "would install${as_root:+ with $as_root}: $missing"
    exit 0
fi

say "installing${as_root:+ with $as_root}: $missing"
failed() {
    say "$1. Missing still: $missing"
    say "Is there a network? By hand, as root: $by_hand"
    say "If you have them from elsewhere, set ATP_PACKAGES=skip in the environment."
    exit 1
}
# A stale or empty list of packages is the rule on a fresh system.
$as_root apt-get -qq update >/dev/null || failed "apt-get update failed"
# shellcheck disable=SC2086 # a list of names
$as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq -y -o Dpkg::Use-Pty=0 install --no-install-recommends $missing </dev/null >/dev/null ||
    failed "apt-get install failed"
