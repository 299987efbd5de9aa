#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# ATP in somebody else's build: installed, found by pkg-config and plain cc; and as a subproject of meson. The libraries
# export what the public headers declare, and no more.
#
#   sh tests/install/test_install.sh SOURCE BUILD
set -eu

source=${1:?usage: test_install.sh SOURCE BUILD}
build=${2:?usage: test_install.sh SOURCE BUILD}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# What a caller's build has set is not for the builds here.
unset DESTDIR MESON_BUILD_ROOT MESON_SOURCE_ROOT MESON_SUBDIR
passed=0

pass() {
    passed=$((passed + 1))
    echo "ok      $*"
}
fail() {
    echo "FAILED  $*"
    echo "$passed passed, 1 failed"
    exit 1
}

meson install -C "$build" --no-rebuild --quiet --destdir "$scratch/root" >"$scratch/log" 2>&1 ||
    { cat "$scratch/log"; fail "meson install"; }
plan=$build/tests/tiny.plan.yaml
cp "$source/tests/install/program.c" "$build/tests/tiny_plan.c" "$scratch"

found=$(find "$scratch/root" -name atp.pc)
PKG_CONFIG_PATH=$(dirname "$found")
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR="$scratch/root"
libraries=$(dirname "$PKG_CONFIG_PATH")
schemas=$(pkg-config --variable=schemas atp)
schemas=${schemas#"$scratch/root"} # pkgconf adds it, pkg-config does not
for format in profile plan; do
    test -s "$scratch/root/$schemas/$format.v1.schema.json" || fail "the schema of a $format is installed in $schemas"
    page=$(find "$scratch/root" -path "*/man5/atp-$format.5")
    grep -q "$schemas/$format.v1.schema.json" "$page" || fail "the manual page of a $format is installed, and names it"
done
pass "both schemas and their manual pages are installed"
# shellcheck disable=SC2046 # flags
${CC:-cc} -std=c11 -Wall -Wextra -Werror "$scratch/program.c" "$scratch/tiny_plan.c" \
    $(pkg-config --cflags --libs atp_yaml atp) -o "$scratch/program" || fail "cc with the flags of pkg-config"
pass "cc with the flags of pkg-config"
LD_LIBRARY_PATH=$libraries "$scratch/program" "$plan" | grep -q '^tiny: one plan$' || fail "the program runs"
pass "the program runs"

# One dynamic symbol for each ATP_API of the headers, under a version.
for library in atp atp_yaml; do
    case $library in
    atp_yaml) headers=$source/runtime/include/atp/plan_yaml.h ;;
    *) headers=$(find "$source/runtime/include/atp" -name '*.h' ! -name plan_yaml.h) ;;
    esac
    # shellcheck disable=SC2086 # names without blanks
    cat $headers | tr '\n' ' ' | grep -oE 'ATP_API [^;(]*[ *]atp_[a-z_]+\(' | sed 's/.*[ *]\(atp_[a-z_]*\)($/\1/' |
        sort >"$scratch/declared"
    version=$(echo "$library" | tr '[:lower:]' '[:upper:]')
    nm -D --defined-only "$libraries/lib$library.so" | awk '$2 != "A" { print $3 }' | sort >"$scratch/exported"
    sed "s/\$/@@${version}_0.1/" "$scratch/declared" | diff - "$scratch/exported" ||
        fail "lib$library exports what its headers declare: see runtime/lib$library.map"
    test -s "$scratch/declared" || fail "lib$library declares nothing"
    pass "lib$library exports what its headers declare"
    readelf -d "$libraries/lib$library.so" | grep -q "SONAME.*\[lib$library.so.0\]" || fail "the name of lib$library"
    pass "lib$library is lib$library.so.0"
done

mkdir -p "$scratch/host/subprojects"
ln -s "$source" "$scratch/host/subprojects/atp"
mv "$scratch/program.c" "$scratch/tiny_plan.c" "$scratch/host"
cat >"$scratch/host/meson.build" <<'MESON'
project('host', 'c', default_options: ['c_std=c11'])
atp = dependency('atp', fallback: 'atp')
atp_yaml = dependency('atp_yaml', fallback: 'atp')
executable('program', 'program.c', 'tiny_plan.c', dependencies: [atp_yaml, atp])
MESON
unset PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
if ! { meson setup "$scratch/sub" "$scratch/host" --force-fallback-for=atp,atp_yaml -Datp:cuda=disabled &&
    ninja -C "$scratch/sub"; } >"$scratch/log" 2>&1; then
    cat "$scratch/log"
    fail "a subproject of meson builds"
fi
pass "a subproject of meson builds"
"$scratch/sub/program" "$plan" | grep -q '^tiny: one plan$' || fail "and its program runs"
pass "and its program runs"
if grep -q 'glpk\|test_' "$scratch/sub/build.ninja"; then fail "with the libraries and nothing else of ATP"; fi
pass "with the libraries and nothing else of ATP"
echo "$passed passed, 0 failed"
