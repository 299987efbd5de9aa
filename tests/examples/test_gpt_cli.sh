#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The gpt example as a user runs it: test_gpt_cli.sh GPT ATP_PLAN
# Arguments and messages; the memory limit; the same losses, bit for bit, under plans at several budgets in all modes of
# the host backend, and whatever the number of threads.
# shellcheck disable=SC2086 # $small is a list of words
set -u
gpt=$1
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
    "$gpt" "$@" >"$folder/out" 2>&1
    code=$?
    if [ "$code" -ne "$want" ] || ! grep -q -e "$text" "$folder/out"; then
        complain "gpt $*: exit $code, expected $want and \"$text\":"
        cat "$folder/out"
    fi
}

small="--layers 2 --width 32 --heads 2 --context 32 --batch 2 --dropout 10"
short="$small --iterations 2"
expect 0 'usage: gpt' --help
expect 0 'iteration 1: loss' $short
expect 2 'no option --nonsense' --nonsense 1
expect 2 'its value is missing' --batch
expect 2 'expected a number from 1 to 65536' --batch 0
expect 2 'expected a number' --width -3
expect 2 'no multiple of --heads' --width 30 --heads 4
expect 2 'toy, small or medium' --size huge
expect 2 'a size such as 300MiB' --memory 3XB
expect 2 'a size such as 300MiB' --memory 0
expect 2 'a size such as 300MiB' --memory 99999999999GiB
expect 2 'eager, late or threads' --copies now
expect 1 'no-such-text: cannot be read' --text "$folder/no-such-text"
echo short >"$folder/short"
expect 1 'no longer than the context' --text "$folder/short"
expect 3 'no-such-plan' --plan "$folder/no-such-plan" $short
echo 'atp_plan: 1' >"$folder/bad.plan"
expect 3 'bad.plan:1:1: ' --plan "$folder/bad.plan" $short
expect 1 'no/such/folder' --record "$folder/no/such/folder" $short

# losses NAME ARGUMENT...: 50 of them, as exact numbers.
losses() {
    name=$1
    shift
    "$gpt" $small --iterations 50 --print-losses "$@" >"$folder/$name" 2>"$folder/$name.words" ||
        complain "gpt $*: $(cat "$folder/$name.words")"
    [ "$(grep -c '^0x' "$folder/$name")" -eq 50 ] || complain "gpt $*: not 50 losses"
}

OMP_NUM_THREADS=1 losses plain
OMP_NUM_THREADS=3 losses threads
cmp "$folder/plain" "$folder/threads" || complain "the number of threads changes the losses"
profile=$folder/profile.yaml
losses recorded --record "$profile"
cmp "$folder/plain" "$folder/recorded" || complain "recording changes the losses"
for text in 'model: "gpt"' 'batch_size: 2' 'name: "b1.scores", phase: forward' 'phase: update' 'workspace_bytes'; do
    grep -q -e "$text" "$profile" || complain "the profile does not say $text"
done

# The planner names the least budget when it is asked for less.
least=$("$atp_plan" "$profile" --budget 1 -o "$folder/none" 2>&1 | sed -n 's/.*least budget[^0-9]*\([0-9][0-9]*\).*/\1/p' |
    head -n 1)
[ -n "$least" ] || complain "atp-plan names no least budget"
for budget in 75% 50% 35% "$least"; do
    plan=$folder/plan.yaml
    if ! "$atp_plan" "$profile" --budget "$budget" -o "$plan" >"$folder/out" 2>&1; then
        complain "atp-plan --budget $budget: $(cat "$folder/out")"
        continue
    fi
    for copies in eager late threads; do
        losses planned --plan "$plan" --copies "$copies" --poison
        cmp "$folder/plain" "$folder/planned" || complain "budget $budget, copies $copies: other losses"
    done
    grep -q 'predicted    measured' "$folder/planned.words" || complain "no predicted times beside the measured ones"
done

# The limit: above what the last plan, of the least budget, needs, and below what is needed without one.
expect 1 'atp-plan --budget' $short --memory 200kB
expect 0 'iteration 1: loss' $short --memory 200kB --plan "$folder/plan.yaml"
expect 3 'plan.yaml: ' $short --width 64 --plan "$folder/plan.yaml"
exit $failed
