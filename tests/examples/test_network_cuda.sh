#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# A network's layers on a CUDA device against those on the host, and plans on the device:
# test_network_cuda.sh CUDA ATP_PLAN HOST gpt|resnet [--short]
# CUDA and HOST are the programs; --short is for kernels on the CPU. Recorded, planned for several budgets and for a link
# so slow that plans recompute, and replayed: the losses, and all that the network prints, must be those of plain
# training, bit for bit. Without a device it is skipped (77).
# shellcheck disable=SC2086,SC2154 # $small is a list of words; $program, $atp_plan and $folder are network.sh's
# shellcheck source=tests/examples/network.sh
. "$(dirname "$0")/network.sh"
host=$3
network=$4
size=${5:-}

fail() {
    echo "$*"
    exit 1
}

# Losses come apart with time: kinks of ReLU make more of a rounding error, so of resnet's only the first are compared.
case $network$size in
gpt) small="--layers 2 --width 64 --heads 2 --context 64 --batch 4 --iterations 50" compared=50 ;;
gpt--short) small="--layers 2 --width 32 --heads 2 --context 32 --batch 4 --iterations 5" compared=5 ;;
resnet) small="--blocks 2 --width 8 --iterations 20 --print-statistics" compared=10 ;;
resnet--short) small="--blocks 1 --width 8 --batch 16 --iterations 5 --print-statistics" compared=5 ;;
*) fail "what is \"$network $size\"?" ;;
esac
small="$small --print-losses"

"$program" --help >/dev/null || fail "$program does not start"
if ! "$program" $small >"$folder/plain" 2>"$folder/words"; then
    if grep -q 'no device' "$folder/words"; then
        echo "there is no CUDA device here"
        exit 77
    fi
    fail "$(cat "$folder/words")"
fi
"$host" $small >"$folder/host" 2>/dev/null || fail "the host version fails"
python3 - "$folder/host" "$folder/plain" $compared <<'PYTHON' || exit 1
import sys
host, cuda = ([float.fromhex(line) for line in open(path) if line.startswith("0x")] for path in sys.argv[1:3])
pairs = list(zip(host, cuda))[: int(sys.argv[3])]
worst = max(abs(a - b) / a for a, b in pairs)
print("largest difference to the host's first %d losses: %.1e" % (len(pairs), worst))
sys.exit(not (len(host) == len(cuda) and worst < 1e-3))
PYTHON

# replay PROFILE BUDGET: the same as plain.
replay() {
    "$atp_plan" "$1" --budget "$2" -o "$folder/plan.yaml" >"$folder/words" 2>&1 || fail "$(cat "$folder/words")"
    grep '^moved' "$folder/words"
    "$program" $small --plan "$folder/plan.yaml" --poison >"$folder/planned" 2>"$folder/words" ||
        fail "$(cat "$folder/words")"
    cmp "$folder/plain" "$folder/planned" || fail "budget $2: not what plain training gives"
}

profile=$folder/profile.yaml
"$program" $small --record "$profile" >"$folder/recorded" 2>"$folder/words" || fail "$(cat "$folder/words")"
cmp "$folder/plain" "$folder/recorded" || fail "recording changes what training gives"
least=$(least_budget "$profile")
[ -n "$least" ] || fail "atp-plan names no least budget"
slow_link "$profile" "$folder/slow.yaml"
replay "$folder/slow.yaml" 60%
grep -q '\[rerun, ' "$folder/plan.yaml" || fail "the plan for a slow link reruns nothing: nothing is tested"
for budget in 75% 50% "$least"; do
    replay "$profile" "$budget"
done
grep '^iteration' "$folder/words"
