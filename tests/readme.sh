#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What the README says is true: its commands run, its profile is the shipped one, its C compiles, the paths that it
# names exist, and every block below an "output:" mark is what the command of the mark prints. Builds in `build`.
#
#   sh tests/readme.sh          checks
#   sh tests/readme.sh --fill   writes the output blocks anew
set -eu

cd "$(dirname "$0")/.."
readme=README.md
fill=false
case ${1:-} in
--fill) fill=true ;;
'') ;;
*)
    echo "usage: sh tests/readme.sh [--fill]" >&2
    exit 2
    ;;
esac

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
bad=0
complain() {
    echo "$readme: $*"
    bad=1
}

# The text of all fenced blocks of one language.
blocks() {
    awk -v fence="\`\`\`$1" '$0 == fence { inside = 1; next } /^```/ { inside = 0 } inside' "$readme"
}

if [ ! -f build/build.ninja ]; then meson setup build >"$scratch/log" || { cat "$scratch/log"; exit 1; }; fi
ninja -C build --quiet >"$scratch/log" || { cat "$scratch/log"; exit 1; }

# tests/run.sh is the caller's to run: it has, or it is running.
blocks sh >"$scratch/commands"
while IFS= read -r command; do
    case $command in
    '' | 'sh tests/run.sh'*) continue ;;
    esac
    echo "\$ $command"
    if ! sh -euc "$command" >"$scratch/log" 2>&1 </dev/null; then
        cat "$scratch/log"
        complain "this command fails: $command"
    fi
done <"$scratch/commands"

blocks yaml >"$scratch/profile.yaml"
if ! grep -v '^#' profiles/tiny.yaml | diff - "$scratch/profile.yaml"; then
    complain "the profile is not profiles/tiny.yaml"
fi

blocks c >"$scratch/program.c"
if ! ${CC:-cc} -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -Iruntime/include "$scratch/program.c"; then
    complain "its C does not compile"
fi

# Names in code quotes that look like paths; `build` is made, not shipped.
# shellcheck disable=SC2016 # quotes of Markdown
grep -oE '`[A-Za-z.][A-Za-z0-9_.-]*/[A-Za-z0-9_./-]*`' "$readme" | tr -d '`' | sort -u >"$scratch/paths"
while IFS= read -r path; do
    case $path in
    build/*) ;;
    *) if [ ! -e "$path" ] && [ ! -e "runtime/include/$path" ]; then complain "there is no $path"; fi ;;
    esac
done <"$scratch/paths"

# The output of mark N goes to $scratch/output.N.
sed -n 's/^<!-- output: \(.*\) -->$/\1/p' "$readme" >"$scratch/marks"
number=0
while IFS= read -r command; do
    number=$((number + 1))
    if ! sh -euc "$command" >"$scratch/output.$number" 2>"$scratch/log" </dev/null; then
        cat "$scratch/log"
        complain "this command fails: $command"
    fi
done <"$scratch/marks"

# Replaces the block below each mark, or adds one.
awk -v prefix="$scratch/output." '
    function print_output(    line) {
        file = prefix (++number)
        print "```text"
        while ((getline line < file) > 0) { sub(/[ \t]+$/, "", line); print line }
        print "```"
    }
    skipping { if (/^```$/) skipping = 0; next }
    marked { marked = 0; if (/^```text$/) { skipping = 1; next } }
    { print }
    /^<!-- output: .* -->$/ { print_output(); marked = 1 }
' "$readme" >"$scratch/README.md"

if [ $bad -ne 0 ]; then
    exit 1
fi
if $fill; then
    cat "$scratch/README.md" >"$readme"
    echo "$readme: $number outputs written"
elif ! diff "$readme" "$scratch/README.md"; then
    complain "the outputs differ; sh tests/readme.sh --fill writes them anew"
    exit 1
else
    echo "$readme: its commands run, its $number outputs are true"
fi
