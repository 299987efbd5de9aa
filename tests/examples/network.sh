# SPDX-License-Identifier: GPL-3.0-or-later
# What the tests of the example networks share, read by test_gpt_cli.sh, test_resnet_cli.sh and test_network_cuda.sh: all
# are run as TEST PROGRAM ATP_PLAN. The first two set `small`, the arguments that make the network small, `also`, an
# option that prints more to compare, and `also_lines`, how many lines, and end with `exit $failed`.
# shellcheck shell=sh disable=SC2034,SC2086 # $small and $also are lists of words
set -u
program=$1
atp_plan=$2
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failed=0
small='' also='' also_lines=0

complain() {
    echo "$*"
    failed=1
}

# expect CODE TEXT ARGUMENT...: the exit code, and a piece of what is printed.
expect() {
    want=$1 text=$2
    shift 2
    "$program" "$@" >"$folder/out" 2>&1
    code=$?
    if [ "$code" -ne "$want" ] || ! grep -q -e "$text" "$folder/out"; then
        complain "$program $*: exit $code, expected $want and \"$text\":"
        cat "$folder/out"
    fi
}

# losses NAME ARGUMENT...: 50 of them, as exact numbers, and what `also` prints.
losses() {
    name=$1
    shift
    "$program" $small --iterations 50 --print-losses $also "$@" >"$folder/$name" 2>"$folder/$name.words" ||
        complain "$program $*: $(cat "$folder/$name.words")"
    [ "$(grep -c '^0x' "$folder/$name")" -eq 50 ] || complain "$program $*: not 50 losses"
    [ "$(grep -vc '^0x' "$folder/$name")" -eq "$also_lines" ] || complain "$program $*: not $also_lines more lines"
}

# Plain training, into $folder/plain.
plain_losses() {
    OMP_NUM_THREADS=1 losses plain
    OMP_NUM_THREADS=3 losses threads
    cmp "$folder/plain" "$folder/threads" || complain "the number of threads changes the losses"
}

# record PROFILE: must change nothing.
record() {
    losses recorded --record "$1"
    cmp "$folder/plain" "$folder/recorded" || complain "recording changes the losses"
}

# The planner names the least budget when it is asked for less: least_budget PROFILE.
least_budget() {
    "$atp_plan" "$1" --budget 1 -o "$folder/none" 2>&1 | sed -n 's/.*least budget[^0-9]*\([0-9][0-9]*\).*/\1/p' | head -n 1
}

# The same profile with a link so slow that plans recompute: slow_link PROFILE OUT.
slow_link() {
    sed -e 's/\([dh]2[hd]_[a-z_]*per_second\): [0-9.e]*/\1: 1000000/' "$1" >"$2"
}

# plans_agree PROFILE BUDGET...: the same as plain in all modes of the host backend. The last plan stays.
plans_agree() {
    profile=$1
    shift
    for budget; do
        plan=$folder/plan.yaml
        if ! "$atp_plan" "$profile" --budget "$budget" -o "$plan" >"$folder/out" 2>&1; then
            complain "atp-plan --budget $budget: $(cat "$folder/out")"
            continue
        fi
        grep -E '^moved' "$folder/out"
        for copies in eager late threads; do
            losses planned --plan "$plan" --copies "$copies" --poison
            cmp "$folder/plain" "$folder/planned" || complain "budget $budget, copies $copies: not what plain training gives"
        done
        grep -q 'predicted    measured' "$folder/planned.words" || complain "no predicted times beside the measured ones"
    done
}
