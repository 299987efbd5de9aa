#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The resnet example as a user runs it: test_resnet_cli.sh RESNET ATP_PLAN
# Arguments and messages; the memory limit; the same losses and running statistics, bit for bit, under plans that swap
# and plans that rerun normalisations, at several budgets in all modes of the host backend, and whatever the number of
# threads. What gpt has in common with it, test_gpt_cli.sh asks.
# shellcheck disable=SC2086 # $small is a list of words
set -u
resnet=$1
atp_plan=$2
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failed=0

complain() {
    echo "$*"
    failed=1
}

# expect CODE TEXT ARGUMENT...: the exit code, and a piece of what is printed.
expect() {
    want=$1 text=$2
    shift 2
    "$resnet" "$@" >"$folder/out" 2>&1
    code=$?
    if [ "$code" -ne "$want" ] || ! grep -q -e "$text" "$folder/out"; then
        complain "resnet $*: exit $code, expected $want and \"$text\":"
        cat "$folder/out"
    fi
}

small="--blocks 2 --width 2 --image 16 --batch 16"
short="$small --iterations 2"
expect 0 'usage: resnet' --help
expect 0 'iteration 1: loss' $short
expect 0 '^statistics [0-9a-f]\{16\}$' $short --print-statistics
expect 2 'no option --nonsense' --nonsense 1
expect 2 'its value is missing' --blocks
expect 2 'expected a number from 1 to 1000' --blocks 0
expect 2 'no multiple of 4' --image 30
expect 3 'no-such-plan' --plan "$folder/no-such-plan" $short

# losses NAME ARGUMENT...: 50 of them, as exact numbers, and the digest of the running statistics.
losses() {
    name=$1
    shift
    "$resnet" $small --iterations 50 --print-losses --print-statistics "$@" >"$folder/$name" 2>"$folder/$name.words" ||
        complain "resnet $*: $(cat "$folder/$name.words")"
    [ "$(grep -c '^0x' "$folder/$name")" -eq 50 ] || complain "resnet $*: not 50 losses"
    [ "$(grep -c '^statistics ' "$folder/$name")" -eq 1 ] || complain "resnet $*: no statistics"
}

OMP_NUM_THREADS=1 losses plain
OMP_NUM_THREADS=3 losses threads
cmp "$folder/plain" "$folder/threads" || complain "the number of threads changes the losses"
# Another network, so that the comparison can fail.
losses other --seed 2
if [ "$(tail -n 1 "$folder/plain")" = "$(tail -n 1 "$folder/other")" ]; then complain "the statistics say nothing"; fi

# plans_agree PROFILE BUDGET...: the last plan stays.
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
            cmp "$folder/plain" "$folder/planned" || complain "budget $budget, copies $copies: other losses or statistics"
        done
        grep -q 'predicted    measured' "$folder/planned.words" || complain "no predicted times beside the measured ones"
    done
}

# The link as it is: plans swap. The planner names the least budget when it is asked for less.
losses recorded --record "$folder/profile.yaml"
cmp "$folder/plain" "$folder/recorded" || complain "recording changes the losses"
least=$("$atp_plan" "$folder/profile.yaml" --budget 1 -o "$folder/none" 2>&1 |
    sed -n 's/.*least budget[^0-9]*\([0-9][0-9]*\).*/\1/p' | head -n 1)
[ -n "$least" ] || complain "atp-plan names no least budget"
plans_agree "$folder/profile.yaml" 75% 50% 35% "$least"

# The limit: above what the last plan, of the least budget, needs, and below what is needed without one.
expect 1 'atp-plan --budget' $short --memory 250kB
expect 0 'iteration 1: loss' $short --memory 250kB --plan "$folder/plan.yaml"
expect 3 'plan.yaml: ' $short --width 4 --plan "$folder/plan.yaml"

# A link that is so slow that plans recompute: then normalisations run twice.
sed -e 's/\([dh]2[hd]_[a-z_]*per_second\): [0-9.e]*/\1: 1000000/' "$folder/profile.yaml" >"$folder/slow.yaml"
plans_agree "$folder/slow.yaml" 60%
for step in 'norm1' 'norm2'; do
    grep -q "\[rerun, \"*b[0-9].$step" "$folder/plan.yaml" || complain "no plan reruns a $step: nothing is tested"
done
exit $failed
