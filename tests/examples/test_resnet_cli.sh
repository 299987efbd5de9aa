#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The resnet example as a user runs it: test_resnet_cli.sh RESNET ATP_PLAN
# Arguments and messages; the memory limit; the same losses and running statistics, bit for bit, under plans that swap
# and plans that rerun normalisations, at several budgets in all modes of the host backend, and whatever the number of
# threads. What gpt has in common with it, test_gpt_cli.sh asks.
# shellcheck disable=SC2086,SC2154 # $small is a list of words; $folder and $failed are network.sh's
# shellcheck source=tests/examples/network.sh
. "$(dirname "$0")/network.sh"

small="--blocks 2 --width 2 --image 16 --batch 16"
short="$small --iterations 2"
also=--print-statistics also_lines=1
expect 0 'usage: resnet' --help
expect 0 'iteration 1: loss' $short
expect 0 '^statistics [0-9a-f]\{16\}$' $short --print-statistics
expect 2 'no option --nonsense' --nonsense 1
expect 2 'its value is missing' --blocks
expect 2 'expected a number from 1 to 1000' --blocks 0
expect 2 'no multiple of 4' --image 30
expect 3 'no-such-plan' --plan "$folder/no-such-plan" $short

plain_losses
[ "$(grep -c '^statistics ' "$folder/plain")" -eq 1 ] || complain "there are no statistics"
# Another network, so that the comparison can fail.
losses other --seed 2
if [ "$(tail -n 1 "$folder/plain")" = "$(tail -n 1 "$folder/other")" ]; then complain "the statistics say nothing"; fi

# The link as it is: plans swap.
record "$folder/profile.yaml"
least=$(least_budget "$folder/profile.yaml")
[ -n "$least" ] || complain "atp-plan names no least budget"
plans_agree "$folder/profile.yaml" 75% 50% 35% "$least"

# The limit: above what the last plan, of the least budget, needs, and below what is needed without one.
expect 1 'atp-plan --budget' $short --memory 250kB
expect 0 'iteration 1: loss' $short --memory 250kB --plan "$folder/plan.yaml"
expect 3 'plan.yaml: ' $short --width 4 --plan "$folder/plan.yaml"

# Plans that recompute: then normalisations run twice.
slow_link "$folder/profile.yaml" "$folder/slow.yaml"
plans_agree "$folder/slow.yaml" 60%
for step in 'norm1' 'norm2'; do
    grep -q "\[rerun, \"*b[0-9].$step" "$folder/plan.yaml" || complain "no plan reruns a $step: nothing is tested"
done
exit $failed
