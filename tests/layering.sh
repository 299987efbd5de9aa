#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The rules that no compiler knows: which file may include what, licences, sizes. Prints every breach as
# "FILE:LINE: RULE" and then fails.
set -eu

cd "$(dirname "$0")/.."

breaches=$(mktemp)
trap 'rm -f "$breaches"' EXIT

# Files that git knows or would take; an archive without git holds nothing else. Names have no blanks.
list() {
    if git rev-parse --git-dir >/dev/null 2>&1; then
        git ls-files --cached --others --exclude-standard -- "$@"
    else
        for pattern; do
            find . -path './build*' -prune -o -type f -name "$pattern" -print | sed 's,^\./,,'
        done
    fi | sort -u | while IFS= read -r file; do
        if [ -f "$file" ]; then printf '%s\n' "$file"; fi
    done
}

# "FILE:LINE:HEADER" for every include in the files read from standard input.
includes() {
    xargs -r grep -EnH '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]' |
        sed -E 's/^([^:]*:[0-9]*):[^<"]*[<"]([^>"]*)[>"].*/\1:\2/'
}

# forbid RULE FILES HEADERS [BUT-IN]: extended patterns of whole file names and of whole header names.
forbid() {
    printf '%s\n' "$all_includes" | awk -F: -v rule="$1" -v files="^($2)\$" -v headers="^($3)\$" -v but="^(${4:-})\$" '
        $1 ~ files && $3 ~ headers && $1 !~ but { print $1 ":" $2 ": includes " $3 ": " rule }' >>"$breaches"
}

c_files=$(list '*.c' '*.h')
all_includes=$(printf '%s\n' "$c_files" | includes)
planner_headers=$(printf '%s\n' "$c_files" | sed -n 's,^planner/\(.*\)\.h$,\1[.]h,p' | paste -s -d '|' -)

forbid 'only planner/solver_glpk.c knows GLPK' '.*' 'glpk[.]h' 'planner/solver_glpk[.]c'
forbid 'only planner/pytorch_trace.c knows Jansson' '.*' 'jansson[.]h' 'planner/pytorch_trace[.]c'
forbid 'only runtime/yaml_reader.c knows libyaml' '.*' 'yaml[.]h' 'runtime/yaml_reader[.]c'
forbid 'only files named after CUDA load or know its driver' '.*' 'dlfcn[.]h|cuda[a-z_]*[.]h' \
    '(runtime|tests|examples)/.*cuda[a-z_]*[.][ch]|tests/kernels/.*[.]h'
forbid 'the runtime, its checker and its simulator share no code with the planner' 'runtime/.*' \
    "(.*/)?($planner_headers)|(.*/)?planner/.*"
forbid 'public headers know public headers only' 'runtime/include/.*' '.*' ''
# The last rule, made exact: public headers may include <atp/...> and these of the C library.
grep -Ev '^runtime/include/.*: includes (atp/[a-z_]+|std(bool|def|int))[.]h: ' "$breaches" >"$breaches.kept" || true
mv "$breaches.kept" "$breaches"

# Examples see what a user sees: <atp/...>, the system, and headers of their own directory and of examples/common. Headers
# of the system that tests/kernels stands in for are still those of the system.
printf '%s\n' "$all_includes" | grep '^examples/' | while IFS=: read -r file line header; do
    case $header in
    atp/* | cublas_v2.h | cuda_runtime.h) ;;
    *)
        if [ ! -f "$(dirname "$file")/$header" ] && [ ! -f "examples/common/$header" ] &&
            [ -n "$(list "*/$header")" ]; then
            echo "$file:$line: includes $header: examples use <atp/...>, their own headers and those of common"
        fi
        ;;
    esac
done >>"$breaches"

# Every public header can come first, in C11 and in C++.
compile_header() {
    if ! printf '#include <atp/%s>\n' "$1" |
        ${CC:-cc} "$2" "$3" -Wall -Wextra -Wpedantic -Werror -fsyntax-only -Iruntime/include - >/dev/null 2>&1; then
        echo "runtime/include/atp/$1:1: does not compile alone as $3"
    fi
}
for path in runtime/include/atp/*.h; do
    header=${path##*/}
    compile_header "$header" -xc -std=c11
    if command -v c++ >/dev/null; then compile_header "$header" -xc++ -std=c++11; fi
done >>"$breaches"

# A licence on every file that we write; sizes that one can read. Test data may be damaged on purpose.
list '*.c' '*.h' '*.cu' '*.cpp' '*.sh' '*.sed' '*.py' '*.yaml' '*meson.build' meson_options.txt |
    grep -Ev '^tests/(.*/)?(corpus|data|golden)/|^meson_options[.]txt$' | while IFS= read -r file; do
    if ! head -n 3 "$file" | grep -Eq 'SPDX-License-Identifier: (Apache-2[.]0|GPL-3[.]0-or-later)'; then
        echo "$file:1: no SPDX-License-Identifier in the first three lines"
    fi
    case $file in
    runtime/include/* | runtime/*.[ch] | examples/*.[ch] | examples/*.cu) licence=Apache-2.0 ;;
    planner/*.[ch] | tests/*.[ch] | tests/*.cpp) licence=GPL-3.0-or-later ;;
    *) licence= ;;
    esac
    if [ -n "$licence" ] && ! head -n 3 "$file" | grep -q "SPDX-License-Identifier: $licence"; then
        echo "$file:1: the licence here is $licence"
    fi
    case $file in
    *.c | *.h | *.cu | *.cpp | *.sh | *.py)
        lines=$(wc -l <"$file")
        if [ "$lines" -gt 600 ]; then echo "$file:600: has $lines lines, 600 at most"; fi
        ;;
    esac
done >>"$breaches"

if [ -s "$breaches" ]; then
    cat "$breaches"
    echo "layering: $(wc -l <"$breaches") breaches"
    exit 1
fi
echo "layering: $(printf '%s\n' "$c_files" | wc -l) C files keep the rules"
