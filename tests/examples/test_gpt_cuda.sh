#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# gpt's layers on a CUDA device against those on the host, and plans on the device: test_gpt_cuda.sh GPT GPT_CUDA ATP_PLAN
# Without a device it is skipped (77).
# shellcheck disable=SC2086 # $small is a list of words
set -u
gpt=$1
gpt_cuda=$2
atp_plan=$3
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

fail() {
    echo "$*"
    exit 1
}

"$gpt_cuda" --help >/dev/null || fail "gpt_cuda does not start"
small="--layers 2 --width 64 --heads 2 --context 64 --batch 4 --iterations 50 --print-losses"
if ! "$gpt_cuda" $small >"$folder/plain" 2>"$folder/words"; then
    if grep -q 'no device' "$folder/words"; then
        echo "there is no CUDA device here"
        exit 77
    fi
    fail "$(cat "$folder/words")"
fi
"$gpt" $small >"$folder/host" 2>/dev/null || fail "the host version fails"
python3 - "$folder/host" "$folder/plain" <<'PYTHON' || exit 1
import sys
host, cuda = ([float.fromhex(line) for line in open(path)] for path in sys.argv[1:])
worst = max(abs(a - b) / a for a, b in zip(host, cuda))
print("largest difference to the host's losses: %.1e" % worst)
sys.exit(not (len(host) == len(cuda) == 50 and worst < 1e-3))
PYTHON

"$gpt_cuda" $small --record "$folder/profile.yaml" >/dev/null 2>"$folder/words" || fail "$(cat "$folder/words")"
for budget in 75% 50% 35%; do
    "$atp_plan" "$folder/profile.yaml" --budget $budget -o "$folder/plan.yaml" >"$folder/words" 2>&1 ||
        fail "$(cat "$folder/words")"
    "$gpt_cuda" $small --plan "$folder/plan.yaml" --poison >"$folder/planned" 2>"$folder/words" ||
        fail "$(cat "$folder/words")"
    cmp "$folder/plain" "$folder/planned" || fail "budget $budget: other losses"
done
grep iteration "$folder/words"
