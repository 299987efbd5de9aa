#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Two ranks, each under a plan of its own, against one rank with twice the batch: test_gpt_ranks.sh GPT ATP_PLAN MPIRUN
# shellcheck disable=SC2086 # $small is a list of words
set -u
gpt=$1
atp_plan=$2
mpirun=$3
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
# For containers: root, more processes than cores, no rsh. MPI's own leaks are not ours.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_plm_rsh_agent='' OMPI_MCA_btl_base_warn_component_unused=0 TMPDIR="$folder"
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"

fail() {
    echo "$*"
    exit 1
}

small="--layers 2 --width 32 --heads 2 --context 32 --iterations 20 --print-losses"
two() {
    "$mpirun" -n 2 "$gpt" --ranks 2 --batch 2 $small "$@" 2>"$folder/words" || fail "two ranks: $(cat "$folder/words")"
}

"$gpt" $small --batch 4 >"$folder/one" 2>/dev/null || fail "one rank fails"
two --record "$folder/profile{rank}.yaml" >"$folder/two"
for rank in 0 1; do
    grep -q '"all_reduce", phase: update.*rerun: never' "$folder/profile$rank.yaml" || fail "the all-reduce may be rerun"
    "$atp_plan" "$folder/profile$rank.yaml" --budget "$((60 - 15 * rank))%" -o "$folder/plan$rank.yaml" \
        >"$folder/words" 2>&1 || fail "$(cat "$folder/words")"
done
two --plan "$folder/plan{rank}.yaml" --poison >"$folder/planned"
cmp "$folder/two" "$folder/planned" || fail "plans change the losses"

# To rounding: sums of two halves are not sums of the whole, and 20 updates build on them.
python3 - "$folder/one" "$folder/two" <<'PYTHON' || exit 1
import sys
one, two = ([float.fromhex(line) for line in open(path)] for path in sys.argv[1:])
worst = max(abs(a - b) / a for a, b in zip(one, two))
print("largest difference of %d losses: %.1e" % (len(one), worst))
sys.exit(not (len(one) == len(two) == 20 and worst < 1e-5))
PYTHON

if "$mpirun" -n 2 "$gpt" --ranks 3 $small >"$folder/words" 2>&1; then fail "two processes are no three ranks"; fi
grep -q 'mpirun -n 3' "$folder/words" || fail "no advice: $(cat "$folder/words")"
