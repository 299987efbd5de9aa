#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Arguments, messages and exit codes of the mlp example: test_mlp_cli.sh MLP
# shellcheck disable=SC2086 # $small is a list of words
set -u
mlp=$1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failed=0

# expect CODE TEXT ARGUMENT...: the exit code, and a piece of what is printed.
expect() {
    want=$1 text=$2
    shift 2
    "$mlp" "$@" >"$folder/out" 2>&1
    code=$?
    if [ "$code" -ne "$want" ] || ! grep -q -e "$text" "$folder/out"; then
        echo "mlp $*: exit $code, expected $want and \"$text\":"
        cat "$folder/out"
        failed=1
    fi
}

small="--batch 4 --width 8 --blocks 2 --iterations 3"
expect 0 'usage: mlp' --help
expect 0 'iteration 2: loss' $small
expect 2 'no option --nonsense' --nonsense 1
expect 2 'its value is missing' --batch
expect 2 'expected a number from 1 to 65536' --batch 0
expect 2 'expected a number' --width -3
expect 2 'expected a number' --iterations 3x
expect 2 'eager, late or threads' --copies now
expect 3 'no-such-plan' --plan "$folder/no-such-plan" $small
echo 'atp_plan: 1' >"$folder/bad.plan"
expect 3 'bad.plan:1:1: ' --plan "$folder/bad.plan" $small
expect 1 'no/such/folder' --record "$folder/no/such/folder" $small

expect 0 loss --record "$folder/profile.yaml" $small
for text in 'atp_profile: 1' 'model: "mlp"' 'batch_size: 4' 'name: "b1.dropout", phase: forward' \
    'rerun: never' 'phase: update'; do
    if ! grep -q -e "$text" "$folder/profile.yaml"; then
        echo "the profile does not say $text"
        failed=1
    fi
done

"$mlp" $small --print-losses >"$folder/eager" 2>/dev/null
"$mlp" $small --print-losses --copies threads --poison >"$folder/threads" 2>/dev/null
if ! cmp "$folder/eager" "$folder/threads" || [ "$(grep -c '^0x' "$folder/eager")" -ne 3 ]; then
    echo 'losses differ, or are not three hexadecimal floats'
    failed=1
fi
exit $failed
