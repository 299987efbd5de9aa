#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The gpt example as a user runs it: test_gpt_cli.sh GPT ATP_PLAN
# Arguments and messages; the memory limit; the same losses, bit for bit, under plans at several budgets in all modes of
# the host backend, and whatever the number of threads.
# shellcheck disable=SC2086,SC2154 # $small is a list of words; $folder and $failed are network.sh's
# shellcheck source=tests/examples/network.sh
. "$(dirname "$0")/network.sh"

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

plain_losses
profile=$folder/profile.yaml
record "$profile"
for text in 'model: "gpt"' 'batch_size: 2' 'name: "b1.scores", phase: forward' 'phase: update' 'workspace_bytes'; do
    grep -q -e "$text" "$profile" || complain "the profile does not say $text"
done

least=$(least_budget "$profile")
[ -n "$least" ] || complain "atp-plan names no least budget"
plans_agree "$profile" 75% 50% 35% "$least"

# The limit: above what the last plan, of the least budget, needs, and below what is needed without one.
expect 1 'atp-plan --budget' $short --memory 200kB
expect 0 'iteration 1: loss' $short --memory 200kB --plan "$folder/plan.yaml"
expect 3 'plan.yaml: ' $short --width 64 --plan "$folder/plan.yaml"
exit $failed
