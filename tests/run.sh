#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Builds and runs the tests. The last line is "N passed, N failed"; the exit status is the verdict.
set -eu

usage() {
    cat <<'USAGE'
usage: sh tests/run.sh [--quick | --all | --config NAME] [--build DIR]

  --quick        one build with the default compiler, all tests (this is the default)
  --all          every configuration below, one after the other
  --config NAME  main      the default compiler (CC in the environment to choose), all tests; same as --quick
                 release   optimised, assertions off; the suites of libraries and planner
                 sanitize  clang, address and undefined-behaviour sanitizers
                 threads   thread sanitizer; the suites that start threads
                 nocuda    without the CUDA backend; the suites that link the runtime
                 cuda      with the CUDA backend, the same; skipped where there is no cuda.h
  --build DIR    build there; default: build for main, build-NAME for the others (not with --all)

The packages of .ci/packages are installed where they are missing; ATP_PACKAGES=skip prevents that.
USAGE
}

root=$(cd "$(dirname "$0")/.." && pwd)
here=$(pwd)
cd "$root"

configs=main
build=
while [ $# -gt 0 ]; do
    case $1 in
    --quick) configs=main ;;
    --all) configs="main release sanitize threads nocuda cuda" ;;
    --config | --build)
        if [ $# -lt 2 ]; then
            usage >&2
            exit 2
        fi
        if [ "$1" = --config ]; then configs=$2; else build=$2; fi
        shift
        ;;
    -h | --help)
        usage
        exit 0
        ;;
    *)
        printf 'tests/run.sh: what is "%s"?\n' "$1" >&2
        usage >&2
        exit 2
        ;;
    esac
    shift
done
if [ -n "$build" ] && [ "${configs#* }" != "$configs" ]; then
    echo "tests/run.sh: --build is for one configuration" >&2
    exit 2
fi
case $build in
'' | /*) ;;
*) build=$here/$build ;;
esac
build=${build#"$root"/}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

quietly() {
    if ! "$@" >"$log" 2>&1; then
        cat "$log" >&2
        printf 'tests/run.sh: failed: %s\n' "$*" >&2
        exit 1
    fi
}

# Clang's sanitizers report more; gcc's will do where there is no clang.
sanitizing_compiler() {
    if command -v clang >/dev/null; then echo clang; else echo "${CC:-cc}"; fi
}

cuda_include() {
    for directory in /usr/include "${CUDA_HOME:-/usr/local/cuda}/include"; do
        if [ -f "$directory/cuda.h" ]; then
            echo "$directory"
            return
        fi
    done
}

verdict=0
built=

# configure, build, test: NAME COMPILER SUITES MESON-ARGUMENT...
test_config() {
    name=$1 compiler=$2 suites=$3
    shift 3
    directory=$build
    if [ -z "$directory" ]; then
        if [ "$name" = main ]; then directory=build; else directory=build-$name; fi
    fi
    printf '\n== %s: %s, in %s\n' "$name" "$compiler${*:+ $*}" "$directory"
    if [ ! -f "$directory/build.ninja" ]; then
        quietly env CC="$compiler" meson setup "$directory" "$@"
    fi
    quietly ninja -C "$directory"
    rm -f "$directory/meson-logs/testlog.json"
    # shellcheck disable=SC2086 # a list of options
    meson test -C "$directory" --no-rebuild --print-errorlogs $suites || verdict=1
    built="$built $directory"
}

sh .ci/packages.sh .ci/packages
# The first error ends a test: its place counts, not what follows. Asking for too much memory is a test, no error.
export ASAN_OPTIONS="${ASAN_OPTIONS:-abort_on_error=1:allocator_may_return_null=1}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}"
export TSAN_OPTIONS="${TSAN_OPTIONS:-halt_on_error=1:allocator_may_return_null=1}"

# The planner is the same with and without CUDA.
runtime_suites="--suite runtime --suite contract --suite examples"
for config in $configs; do
    case $config in
    main) test_config main "${CC:-cc}" "" ;;
    release) test_config release "${CC:-cc}" "--suite runtime --suite contract --suite planner" --buildtype=release ;;
    sanitize)
        test_config sanitize "$(sanitizing_compiler)" "" -Db_sanitize=address,undefined -Db_lundef=false
        ;;
    threads)
        test_config threads "$(sanitizing_compiler)" "--suite runtime --suite contract" \
            -Db_sanitize=thread -Db_lundef=false
        ;;
    nocuda) test_config nocuda "${CC:-cc}" "$runtime_suites" -Dcuda=disabled ;;
    cuda)
        include=$(cuda_include)
        if [ -z "$include" ]; then
            printf '\n== cuda: skipped, there is no cuda.h here\n'
        else
            test_config cuda "${CC:-cc}" "$runtime_suites" -Dcuda=enabled "-Dtoolkit_include=$include"
        fi
        ;;
    *)
        printf 'tests/run.sh: there is no configuration "%s"\n' "$config" >&2
        usage >&2
        exit 2
        ;;
    esac
done

if [ -z "$built" ]; then
    exit 0
fi
echo
# shellcheck disable=SC2086 # a list of directories
python3 tests/summary.py $built || verdict=1
exit $verdict
