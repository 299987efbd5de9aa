#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What the READMEs and the pages of planner/ say is true: their commands run, their profile is the shipped one, their C compiles, the paths that
# they name exist, and the blocks below marks are what commands print:
#
#   <!-- output: COMMAND -->   exactly this
#   <!-- sample: COMMAND -->   this, but for numbers and their units, such as times
#   <!-- sample -->            the same, of the commands in the block of sh above
#   <!-- from: FILE -->        what follows, in C, stands in this file
#   <!-- holds: COMMAND -->    this succeeds
#
# Builds in `build`.
#
#   sh tests/readme.sh [FILE...]          checks
#   sh tests/readme.sh --fill [FILE...]   writes these blocks anew
set -eu

cd "$(dirname "$0")/.."
fill=false
case ${1:-} in
--fill)
    fill=true
    shift
    ;;
-*)
    echo "usage: sh tests/readme.sh [--fill] [FILE...]" >&2
    exit 2
    ;;
esac
if [ $# -eq 0 ]; then
    set -- README.md examples/README.md examples/gpt/README.md examples/resnet/README.md planner/*.md schemas/README.md
fi

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

# "NUMBER COMMAND" for every line of the blocks of sh: the number is the block's.
commands() {
    awk '$0 == "```sh" { inside = 1; n++; next } /^```/ { inside = 0 } inside && /./ { print n, $0 }' "$readme"
}

# run COMMAND FILE: both outputs go there.
run() {
    if ! sh -euc "$1" >"$2" 2>&1 </dev/null; then
        cat "$2"
        complain "this command fails: $1"
    fi
}

# Numbers with sign, unit and the blanks around them.
without_numbers() {
    sed -E 's/[-+]?[0-9][0-9.]*( (B|kB|MB|GB|us|ms|s|%))?/N/g; s/ +/ /g' "$1"
}

check_readme() {
    readme=$1
    rm -f "$scratch"/block.* "$scratch"/output.*

    # tests/run.sh is the caller's to run: it has, or it is running.
    commands >"$scratch/commands"
    while read -r number command; do
        case $command in
        'sh tests/run.sh'*) continue ;;
        esac
        echo "\$ $command"
        run "$command" "$scratch/log"
        cat "$scratch/log" >>"$scratch/block.$number"
    done <"$scratch/commands"

    # Names in code quotes that look like paths; `build` is made, not shipped.
    # shellcheck disable=SC2016 # quotes of Markdown
    grep -oE '`[A-Za-z.][A-Za-z0-9_.-]*/[A-Za-z0-9_./-]*`' "$readme" | tr -d '`' | sort -u >"$scratch/paths"
    while IFS= read -r path; do
        case $path in
        build/*) ;;
        *) if [ ! -e "$path" ] && [ ! -e "runtime/include/$path" ] && [ ! -e "$(dirname "$readme")/$path" ]; then
            complain "there is no $path"
        fi ;;
        esac
    done <"$scratch/paths"

    # Excerpts, each in a file of its own.
    rm -f "$scratch"/excerpt.*
    awk -v prefix="$scratch/excerpt." '
        /^<!-- from: .* -->$/ { file = $3; next }
        file != "" && $0 == "```c" { name = prefix (++n); print file >(name ".file"); inside = 1; next }
        /^```/ { inside = 0; file = "" }
        inside { print >name }' "$readme"
    for excerpt in "$scratch"/excerpt.*.file; do
        [ -e "$excerpt" ] || continue
        file=$(cat "$excerpt")
        if ! awk 'BEGIN { RS = "\001" } NR == FNR { part = $0; next } { exit !index($0, part) }' "${excerpt%.file}" \
            "$file"; then
            cat "${excerpt%.file}"
            complain "this does not stand in $file"
        fi
    done

    sed -n 's/^<!-- holds: \(.*\) -->$/\1/p' "$readme" >"$scratch/holds"
    while IFS= read -r command; do
        run "$command" "$scratch/log"
    done <"$scratch/holds"

    # The output of the mark in line N goes to $scratch/output.N.
    awk '$0 == "```sh" { n++ } /^<!-- sample -->$/ { print NR, "block " n }
        /^<!-- (output|sample): .* -->$/ { sub(/^<!-- [a-z]*: /, ""); sub(/ -->$/, ""); print NR, "command", $0 }' \
        "$readme" >"$scratch/marks"
    while read -r line kind command; do
        case $kind in
        block) cp "$scratch/block.$command" "$scratch/output.$line" ;;
        *) run "$command" "$scratch/output.$line" ;;
        esac
    done <"$scratch/marks"

    # Replaces the block below each mark, or adds one.
    awk -v prefix="$scratch/output." '
        function print_output(    line, file) {
            file = prefix NR
            print "```text"
            while ((getline line < file) > 0) { sub(/[ \t]+$/, "", line); print line }
            print "```"
        }
        skipping { if (/^```$/) skipping = 0; next }
        marked { marked = 0; if (/^```text$/) { skipping = 1; next } }
        { print }
        /^<!-- (output: .*|sample|sample: .*) -->$/ { print_output(); marked = 1 }
    ' "$readme" >"$scratch/filled"

    if [ $bad -ne 0 ]; then
        exit 1
    fi
    number=$(wc -l <"$scratch/marks")
    if $fill; then
        cat "$scratch/filled" >"$readme"
        echo "$readme: $number outputs written"
        return
    fi
    # Samples lose their numbers on both sides.
    for file in "$readme" "$scratch/filled"; do
        awk -v samples="$scratch/samples" -v rest="$scratch/rest" '
            FNR == 1 { printf "" >samples; printf "" >rest }
            marked { marked = 0; if (/^```text$/) inside = 1 }
            { print >(inside ? samples : rest) }
            /^```$/ { inside = 0 }
            /^<!-- sample.* -->$/ { marked = 1 }' "$file"
        without_numbers "$scratch/samples" >>"$scratch/rest"
        mv "$scratch/rest" "$scratch/compared.$(basename "$file")"
    done
    if ! diff "$scratch/compared.$(basename "$readme")" "$scratch/compared.filled"; then
        complain "the outputs differ; sh tests/readme.sh --fill writes them anew"
        exit 1
    fi
    echo "$readme: its commands run, its $number outputs are true"
}

if [ ! -f build/build.ninja ]; then meson setup build >"$scratch/log" || { cat "$scratch/log"; exit 1; }; fi
ninja -C build --quiet >"$scratch/log" || { cat "$scratch/log"; exit 1; }

readme=README.md
blocks yaml >"$scratch/profile.yaml"
if ! grep -v '^#' profiles/tiny.yaml | diff - "$scratch/profile.yaml"; then
    complain "the profile is not profiles/tiny.yaml"
fi

blocks c >"$scratch/program.c"
if ! ${CC:-cc} -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -Iruntime/include "$scratch/program.c"; then
    complain "its C does not compile"
fi

for readme; do
    check_readme "$readme"
done
