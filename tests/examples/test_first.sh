#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The guide's program records, is planned into less memory, and trains under the plan with the same losses.
#
#   sh test_first.sh TRAIN ATP-PLAN
set -eu

train=${1:?usage: test_first.sh TRAIN ATP-PLAN}
planner=${2:?usage: test_first.sh TRAIN ATP-PLAN}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0

holds() {
    name=$1
    shift
    if ! "$@"; then
        echo "FAILED  $name"
        echo "$passed passed, 1 failed"
        exit 1
    fi
    passed=$((passed + 1))
    echo "ok      $name"
}
# The exit status is to be $1; the words are kept.
says() {
    wanted=$1
    shift
    status=0
    "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
    [ "$status" -eq "$wanted" ]
}

holds "it trains" says 0 "$train"
cp "$scratch/out" "$scratch/losses"
# shellcheck disable=SC2016 # fields of awk
holds "the loss falls" awk 'NR == 1 { first = $2 } { last = $2 } END { exit !(NR == 10 && last < first / 2) }' "$scratch/losses"
holds "it records" says 0 "$train" --record "$scratch/profile.yaml"
holds "recording changes nothing" cmp "$scratch/out" "$scratch/losses"
for budget in 60% 30%; do
    holds "it is planned into $budget" says 0 "$planner" "$scratch/profile.yaml" --budget "$budget" -o "$scratch/plan.yaml"
    holds "the plan is proved" says 0 "$planner" check "$scratch/plan.yaml" --profile "$scratch/profile.yaml"
    holds "it trains under the plan" says 0 "$train" --plan "$scratch/plan.yaml"
    holds "with the same losses" cmp "$scratch/out" "$scratch/losses"
    holds "in the plan's arena" grep -q "activations take $(sed -n 's/^arena_bytes: //p' "$scratch/plan.yaml") bytes" "$scratch/err"
done
holds "without such a plan it says so" says 1 "$train" --plan "$scratch/none.yaml"
holds "and which" grep -q "^train: .*none.yaml" "$scratch/err"
holds "it knows no other options" says 2 "$train" --plan
echo "$passed passed, 0 failed"
