#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# All that a machine with a CUDA device can tell, in five minutes: builds, runs the backend contract, replays random
# plans as calls and as graphs and looks at every byte, records a training, plans it, replays the plan and compares its
# times, does the same with both networks of examples/ and compares all losses, does some of it under compute-sanitizer,
# and prints one short table. The exit status is the verdict; 77 where there is no device.
#
#   sh tests/device.sh             on the device
#   sh tests/device.sh --dry-run   on the fake driver of tests/support, where there is no device
#   --iterations N                 of random plans, each way (2000)
#   --seconds N                    what there is no time left for is not run, and fails (300)
#   --build DIR                    default: build-device
#
# Without meson, Check, GLPK or libyaml it builds what needs none of them, and leaves the rest out.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
dry=false
iterations=2000
seconds=300
began=$(date +%s)
build="build-device"
while [ $# -gt 0 ]; do
    case $1 in
    --dry-run) dry=true ;;
    --iterations | --seconds | --build)
        if [ $# -lt 2 ]; then
            echo "tests/device.sh: $1 needs a value" >&2
            exit 2
        fi
        case $1 in
        --build) build=$2 ;;
        --seconds) seconds=$2 ;;
        *) iterations=$2 ;;
        esac
        shift
        ;;
    *)
        sed -n 's/^# \{0,1\}//p' "$0" | sed 1d >&2
        exit 2
        ;;
    esac
    shift
done
case $build in
/*) ;;
*) build=$root/$build ;;
esac
mkdir -p "$build"

table=$(mktemp)
log=$(mktemp)
trap 'rm -f "$table" "$log"' EXIT
trap 'exit 130' INT TERM
verdict=0
missing=false # no device

row() {
    printf '%-34s %s\n' "$1" "$2" >>"$table"
}

# step NAME SECONDS COMMAND...: runs it; its last line, or why not, becomes a row. 77 means "not here".
step() {
    name=$1 limit=$2
    shift 2
    printf '== %s\n' "$name"
    start=$(date +%s)
    left=$((began + seconds - start))
    if [ "$left" -lt "$limit" ]; then limit=$left; fi
    if [ "$limit" -le 0 ]; then
        : >"$log"
        row "$name" "FAILED: not run, the $seconds s are over"
        verdict=1
        return 0
    fi
    status=0
    timeout "$limit" "$@" >"$log" 2>&1 || status=$?
    took=$(($(date +%s) - start))
    tail -n 20 "$log"
    case $status in
    0) row "$name" "ok, $took s: $(tail -n 1 "$log")" ;;
    77)
        row "$name" "not run: $(tail -n 1 "$log")"
        missing=true
        ;;
    124)
        row "$name" "FAILED: not done after $took s"
        verdict=1
        ;;
    *)
        row "$name" "FAILED with status $status after $took s"
        verdict=1
        ;;
    esac
    return 0
}

# facts WORD...: the lines "WORD: ..." of the last step, as rows.
facts() {
    for word; do
        fact=$(sed -n "s/^$word: //p" "$log" | head -n 1)
        if [ -n "$fact" ]; then row "  $word" "$fact"; fi
    done
}

cuda=${CUDA_HOME:-/usr/local/cuda}
program=$build/tests/device-replay
train=$build/tests/device-train
planner=$build/planner/atp-plan
built_by=

build_by_meson() {
    if [ ! -f "$build/build.ninja" ]; then
        meson setup "$build" -Dcuda=enabled "-Dtoolkit_include=$cuda/include" || return 1
    fi
    ninja -C "$build" tests/test_backend tests/device-replay tests/device-train tests/libcuda.so.1 planner/atp-plan
}

build_by_cc() {
    sources=$(find runtime -name '*.c' ! -name '*yaml*' ! -name 'backend_cuda_absent.c')
    mkdir -p "$build/tests"
    # shellcheck disable=SC2086 # a list of files
    ${CC:-cc} -std=c11 -O2 -D_POSIX_C_SOURCE=200809L -Iruntime -Iruntime/include -Itests/support \
        -isystem "$cuda/include" $sources tests/device_replay.c tests/support/plan_builder.c \
        tests/support/random_plan.c tests/support/witness.c -pthread -ldl -o "$program"
    # shellcheck disable=SC2046 # likewise
    ${CC:-cc} -std=c11 -O2 -D_POSIX_C_SOURCE=200809L -fPIC -shared -fvisibility=default -Iruntime -Iruntime/include \
        -Itests/support -isystem "$cuda/include" runtime/fail.c $(find tests/support -name 'fake_cuda*.c') \
        tests/support/race_detector.c tests/support/fake_libcuda.c -pthread -o "$build/tests/libcuda.so.1"
}

echo "== build"
if command -v meson >/dev/null && build_by_meson >"$log" 2>&1; then
    built_by=meson
elif build_by_cc >"$log" 2>&1; then
    built_by=cc
else
    cat "$log"
    echo "tests/device.sh: the build failed" >&2
    exit 1
fi
row build "by $built_by"

if $dry; then
    LD_LIBRARY_PATH=$build/tests${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    ATP_FAKE_DELAY_US=200
    export LD_LIBRARY_PATH ATP_FAKE_DELAY_US
    row device "none: DRY RUN on the fake driver; times and rates mean nothing"
elif command -v nvidia-smi >/dev/null; then
    row device "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1)"
fi

if [ "$built_by" = meson ]; then
    step "backend contract" 60 "$build/tests/test_backend"
    if grep -q '^skipped on cuda:' "$log"; then
        row "backend contract on cuda" "not run: $(grep -m 1 '^skipped on cuda:' "$log")"
        missing=true
    fi
else
    row "backend contract" "not run: needs meson and the packages of .ci/packages"
fi

small=512 large=65536
if $dry; then large=2048; fi
step "chaos, small tensors" 60 "$program" --iterations "$iterations" --scale $small
facts link duplex
step "chaos, small tensors, graphs" 60 "$program" --iterations "$iterations" --scale $small --seed 3 --graph
step "chaos, large tensors" 60 "$program" --iterations $((iterations / 10 + 1)) --seed 2 --scale $large

if $dry; then
    # The witness itself: with a wait lost, the fake driver must find a race.
    if ATP_FAKE_LOST_WAIT=9 "$program" --iterations 40 --scale $small >"$log" 2>&1; then
        row "a lost wait is found" "FAILED: it was not"
        verdict=1
    else
        row "a lost wait is found" "ok: $(grep -m 1 '^race:' "$log" | cut -c 1-80)"
    fi
fi

# Recorded, planned, replayed: without kernels, and as networks where their libraries are.
if [ "$built_by" = meson ]; then
    if $dry; then sizes="--layers 8 --bytes 65536 --workspace 262144 --fills 2"; else sizes=; fi
    # shellcheck disable=SC2086 # a list of words
    step "record, plan, replay" 60 sh tests/device_train.sh "$train" "$planner" 60% $sizes
    facts plain planned overlap graph
else
    row "record, plan, replay" "not run: needs meson and the packages of .ci/packages"
fi
for network in gpt resnet; do
    name="$network, plain and planned"
    host=examples/$network/$network
    if $dry; then
        on_cuda=tests/kernels/$network-on-kernels limit=300 size=--short lacks="a C++ compiler and OpenBLAS"
    else
        on_cuda=examples/$network/${network}_cuda limit=60 size="" lacks="nvcc and its libraries"
    fi
    if [ "$built_by" = meson ] && ninja -C "$build" "$host" "$on_cuda" >"$log" 2>&1; then
        # shellcheck disable=SC2086 # none, or one word
        step "$name" $limit sh tests/examples/test_network_cuda.sh "$build/$on_cuda" "$planner" "$build/$host" $network $size
    else
        row "$name" "not run: it needs meson, $lacks"
    fi
done

sanitizer=$(PATH=$PATH:$cuda/bin command -v compute-sanitizer || true)
for tool in memcheck racecheck; do
    if $dry || [ -z "$sanitizer" ]; then
        row "compute-sanitizer $tool" "not run: $(if $dry; then echo 'dry run'; else echo 'it is not installed'; fi)"
    else
        step "compute-sanitizer $tool" 60 "$sanitizer" --tool $tool --error-exitcode 1 \
            "$program" --iterations 40 --scale $small
    fi
done

row "time" "$(($(date +%s) - began)) s"
printf '\n'
cat "$table"
if [ $verdict -ne 0 ]; then
    echo FAILED
elif $missing; then
    echo "not run: there is no device here; --dry-run uses the fake driver"
    verdict=77
else
    echo "all passed"
fi
exit $verdict
