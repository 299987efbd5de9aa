#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
#
# atp-plan as a user meets it: arguments in, exit code, words and files out. One line per case, "N passed, N failed"
# at the end, and the exit status is the verdict.
#
#   sh tests/e2e/test_cli.sh ATP-PLAN
set -u

planner=${1:?usage: test_cli.sh ATP-PLAN}
case $planner in
/*) ;;
*) planner=$PWD/$planner ;;
esac
profiles=$(cd "$(dirname "$0")/../../profiles" && pwd)
tiny=$profiles/tiny.yaml
large=$profiles/gpt2-small_b8_v100-modelled.yaml
unset NO_COLOR COLUMNS
LC_ALL=C
export LC_ALL

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
cd "$scratch" || exit 1
mkdir out
passed=0
failed=0

pass() {
    passed=$((passed + 1))
    echo "ok      $*"
}

fail() {
    failed=$((failed + 1))
    echo "FAILED  $*"
    sed 's/^/        stderr: /' stderr
    head -n 5 stdout | sed 's/^/        stdout: /'
}

# expect NAME CODE TEXT ARGUMENT...: this exit code, and TEXT (a basic regular expression; empty: anything) on either
# output. Nothing may be left in out/ but what `keep` names.
keep=
expect() {
    name=$1 code=$2 text=$3
    shift 3
    "$planner" "$@" >stdout 2>stderr </dev/null
    got=$?
    if [ $got -ne "$code" ]; then
        fail "$name: exit code $got, expected $code"
    elif [ -n "$text" ] && ! cat stdout stderr | grep -q -e "$text"; then
        fail "$name: does not say \"$text\""
    elif [ "$(ls -A out)" != "$keep" ]; then
        fail "$name: the output directory has \"$(ls -A out)\" in it, expected \"$keep\""
    else
        pass "$name"
    fi
}

# holds NAME COMMAND...: the command succeeds.
holds() {
    name=$1
    shift
    if "$@" >log 2>&1 </dev/null; then pass "$name"; else fail "$name"; fi
}

echo "# usage"
expect "no arguments are a usage error" 2 "usage: atp-plan"
expect "--help helps" 0 "usage: atp-plan" --help
for command in solve check show report compare sweep trace diff emit peak import merge; do
    expect "$command --help helps" 0 "usage: atp-plan .*$command" $command --help
done
expect "help goes to standard output" 0 "" --help
holds "and to nothing else" test -s stdout -a ! -s stderr
expect "--version has a version" 0 "^atp-plan [0-9]*\.[0-9]*\.[0-9]*$" --version
expect "a wrong flag is refused" 2 "there is no option --frobnicate" "$tiny" --frobnicate
expect "a near flag is proposed" 2 "did you mean --budget" "$tiny" --budgte 1GB
expect "the beginning of a flag is proposed" 2 "did you mean --time-limit" "$tiny" --time 1
expect "a wrong short flag is refused" 2 "there is no option -x" "$tiny" -x
expect "a near command is proposed" 2 "did you mean check" chekc plan.yaml --profile "$tiny"
expect "a missing value is missed" 2 "--budget needs a value" "$tiny" --budget
expect "a flag is no value" 2 "--budget needs a value" "$tiny" --budget --batch 1
expect "a value where none belongs is refused" 2 "takes no value" show plan.yaml --no-color=1
expect "a flag twice is refused" 2 "given twice" "$tiny" --budget 1GB --budget 2GB
expect "a flag of another command is refused" 2 "solve.* has no option --max-gap" "$tiny" --max-gap 1%
expect "two profiles are refused" 2 "one file too many" solve "$tiny" "$tiny" --budget 1GB
expect "a command without its file is refused" 2 "check needs a plan" check
expect "no budget: the device's memory is the hint" 2 "--budget 40000000" "$tiny"
expect "--max-gap needs a profile" 2 "needs --profile" check plan.yaml --max-gap 1
expect "-q and -v exclude each other" 2 "exclude" "$tiny" --budget 1GB -q -v
for size in 16G 12XB abc -5 1.5 99999999999999999999 8000000000GB 1e99 '' 1000000% 0x10 ' 1GB'; do
    expect "the size \"$size\" is refused" 2 "--budget" "$tiny" --budget="$size"
done
expect "an ambiguous unit names both" 2 "16GB\|GB.*GiB" "$tiny" --budget 16G
expect "a time limit of nothing is refused" 2 "expected seconds" "$tiny" --budget 1GB --time-limit 0
expect "an alignment of 3 is refused" 2 "power of two" "$tiny" --budget 1GB --alignment 3
expect "a batch of 0 is refused" 2 "expected a whole number" "$tiny" --budget 1GB --batch 0

echo "# bad input"
: >empty.yaml
printf 'atp_profile: 1\nmodel: [\n' >broken.yaml
expect "a missing profile" 3 "cannot open missing.yaml" missing.yaml --budget 1GB
expect "an empty profile" 3 "^empty.yaml" empty.yaml --budget 1GB -o out/plan.yaml
expect "a directory as profile" 3 "irectory" out --budget 1GB
expect "a broken profile has a place" 3 "^broken.yaml:[0-9]*:[0-9]*: " broken.yaml --budget 1GB -o out/plan.yaml
sed 's/reads: \[x\], writes: \[a\]/reads: [y], writes: [a]/' "$tiny" >unknown.yaml
expect "an unknown tensor has a line" 3 "^unknown.yaml:[0-9]*:[0-9]*: steps\[0\].*y" unknown.yaml --budget 1GB
expect "a missing plan" 3 "cannot open missing.yaml" check missing.yaml
expect "an empty plan" 3 "^empty.yaml" show empty.yaml
expect "a profile is no plan" 3 "tiny.yaml:[0-9]*:[0-9]*: " check "$tiny"

echo "# infeasible"
expect "a budget too small names the least one" 1 "least budget is 28000000" "$tiny" --budget 27MB -o out/plan.yaml
expect "and what blocks" 1 "gelu" "$tiny" --budget 27MB -o out/plan.yaml
expect "less than the resident bytes is no crash" 1 "least budget is 28000000" "$tiny" --budget 1 -o out/plan.yaml
expect "a budget of nothing is no crash" 1 "least budget" "$tiny" --budget 0 -o out/plan.yaml

expect "with every tensor of the step" 1 "most needed .* a 8.00 MB, b 8.00 MB" "$tiny" --budget 27MB -o out/plan.yaml
sed 's/^batch_size: 1/batch_size: 4/' "$tiny" >four.yaml
expect "and a batch that would fit" 1 "batch size    2 instead of 4 would fit" four.yaml --budget 20MB -o out/plan.yaml
expect "which does" 0 "" four.yaml --budget 20MB --batch 2
expect "and is the largest" 1 "least budget is 24000000" four.yaml --budget 20MB --batch 3
expect "or that none fits" 1 "not even 1 would fit" four.yaml --budget 12MB -o out/plan.yaml
sed 's/{name: [ab],/& decide: keep,/' "$tiny" >keep.yaml
expect "pins that cost memory are named" 1 "decide: keep  holds a 8.00 MB, b 8.00 MB; without any the least budget is 28000000" \
    keep.yaml --budget 29MB -o out/plan.yaml
expect "with the least budget under them" 1 "least budget  36000000" keep.yaml --budget 1 -o out/plan.yaml
expect "which does" 0 "" keep.yaml --budget 36000000
sed 's/^batch_size/host: {pinned_bytes: 1000}\nbatch_size/; s/writes: \[a\]/&, rerun: never/' "$tiny" >host.yaml
expect "host memory that is too small is named" 1 "host.pinned_bytes is 1000: a budget of 29000000 needs 7000000 at least" \
    host.yaml --budget 29MB -o out/plan.yaml
expect "with the steps that must not rerun" 1 "rerun: never  holds a 8.00 MB" host.yaml --budget 29MB -o out/plan.yaml

echo "# output"
cp "$tiny" own.yaml
expect "a plan does not replace its profile" 2 "replace its profile" own.yaml --budget 100% -o own.yaml
ln -s own.yaml link.yaml
expect "nor through a link" 2 "replace its profile" own.yaml --budget 100% -o link.yaml
holds "the profile is as it was" cmp "$tiny" own.yaml
expect "no such directory" 3 "missing/plan.yaml" "$tiny" --budget 100% -o missing/plan.yaml
expect "a directory as output" 3 "out" "$tiny" --budget 100% -o out
if [ -d /proc/self ]; then
    expect "a directory that cannot be written" 3 "/proc/plan.yaml" "$tiny" --budget 100% -o /proc/plan.yaml
fi
if [ -w /dev/full ]; then
    expect "a full disk" 3 "cannot write" "$tiny" --budget 100% -o /dev/full
    "$planner" "$tiny" --budget 100% >/dev/full 2>stderr
    holds "a full standard output is a failure" test $? -eq 3
    "$planner" --help >/dev/full 2>stderr
    holds "for help too" test $? -eq 3
fi
expect "100% is what training needs without a plan" 0 "0.00 % over compute" "$tiny" --budget 100%
cp stdout stdout.yaml
keep=plan.yaml
expect "-o writes a file" 0 "" "$tiny" --budget=100% -oout/plan.yaml -q
holds "-q says nothing" test ! -s stderr -a ! -s stdout
holds "the same plan as on standard output" cmp stdout.yaml out/plan.yaml
expect "a failure leaves the old plan" 1 "" "$tiny" --budget 27MB -o out/plan.yaml
holds "byte for byte" cmp stdout.yaml out/plan.yaml
for size in 40000000 40000KB 40MB 0.04GB 40e6; do
    expect "40 MB as $size" 0 "" "$tiny" --budget $size -o out/plan.yaml
    holds "gives that budget" grep -q "^budget_bytes: 40000000$" out/plan.yaml
done
expect "mebibytes" 0 "" "$tiny" --budget 39MiB -o out/plan.yaml
holds "are powers of two" grep -q "^budget_bytes: 40894464$" out/plan.yaml
expect "a batch size that was not measured is announced" 0 "scaled" "$tiny" --batch 2 --budget 100% -o out/plan.yaml
holds "and planned for" grep -q "^batch_size: 2$" out/plan.yaml
expect "more than the device has is announced" 0 "above the device" "$tiny" --budget 1GB -o out/plan.yaml
expect "an alignment is kept" 0 "" "$tiny" --budget 41MB --alignment 1024 -o out/plan.yaml
holds "in the plan" grep -q "^alignment_bytes: 1024$" out/plan.yaml
expect "flags may come first" 0 "" --budget 100% -o out/plan.yaml solve "$tiny"
expect "-- ends the flags" 3 "cannot open --help" --budget 100% -- --help

echo "# search"
expect "75% is planned" 0 "gap" "$tiny" --budget 75% -o out/plan.yaml
holds "12 MB resident and 75% of 28 MB" grep -q "^budget_bytes: 33000000$" out/plan.yaml
cp out/plan.yaml first.yaml
expect "again" 0 "" "$tiny" --budget 33MB -o out/plan.yaml
holds "the same bytes" cmp first.yaml out/plan.yaml
if [ -f "$large" ]; then
    expect "a time limit ends a long search" 0 "the time is up" "$large" --budget 55% --effort 1000 --time-limit 1 \
        -o out/plan.yaml
    holds "and marks the plan" grep -q "^time_limited: true$" out/plan.yaml
    expect "which is good" 0 "proved" check out/plan.yaml --profile "$large"
    for signal in INT TERM; do
        rm -f out/plan.yaml
        timeout --foreground --preserve-status -s $signal 1 "$planner" "$large" --budget 55% --effort 1000 \
            -o out/plan.yaml >stdout 2>stderr
        holds "SIG$signal writes the best plan so far" test $? -eq 0 -a "$(ls -A out)" = plan.yaml
        holds "which is marked" grep -q "^time_limited: true$" out/plan.yaml
        expect "and good" 0 "proved" check out/plan.yaml --profile "$large"
    done
else
    echo "# no large profile here: nothing to interrupt"
fi

echo "# check"
expect "a good plan" 0 "proved" check first.yaml --profile "$tiny"
expect "without a profile it says what it did not check" 0 "not checked without --profile" check first.yaml
expect "-q says nothing" 0 "" check first.yaml --profile "$tiny" -q
holds "at all" test ! -s stdout -a ! -s stderr
expect "a gap that is allowed" 0 "proved by the sum of step times" check first.yaml --profile "$tiny" --max-gap 10%
expect "a gap that is not" 1 "^first.yaml:[0-9]*:1: error: predicted.gap" check first.yaml --profile "$tiny" --max-gap 1
expect "the budget it was made for" 0 "proved by" check first.yaml --profile "$tiny" --max-gap 10% --budget 33MB
expect "also as a share" 0 "proved by" check first.yaml --profile "$tiny" --max-gap 10% --budget 75%
expect "another budget" 1 "first.yaml:[0-9]*:1: error: budget_bytes: the plan is for 33000000, but --budget is 32000000" \
    check first.yaml --profile "$tiny" --max-gap 10% --budget 32MB
expect "another link is announced, with what check needs" 0 "check it with --d2h 99000000000 --h2d 98000000000" \
    "$tiny" --budget 33MB --d2h 99GB/s --h2d 98e9 -o fast.yaml
expect "its plan is true with the same link" 0 "its numbers are true" \
    check fast.yaml --profile "$tiny" --d2h 99GB/s --h2d 98e9
expect "and not with the profile's" 1 "made with --d2h or --h2d" check fast.yaml --profile "$tiny"
expect "so is its timeline" 0 "" trace fast.yaml --profile "$tiny" --d2h 99GB/s --h2d 98e9 -o fast.json
expect "another than with the profile's" 0 "" trace fast.yaml --profile "$tiny" -o slow.json
holds "link" test "$(cat fast.json)" != "$(cat slow.json)"
expect "a report needs the link too" 1 "predicted" report fast.yaml --profile "$tiny" --no-policies -o fast.html
expect "and is written with it" 0 "" report fast.yaml --profile "$tiny" --no-policies --d2h 99GB/s --h2d 98e9 -o fast.html
expect "rates of the profile itself are no news" 0 "^[^:]*$\|gap" "$tiny" --budget 33MB --memory 40MB -o same.yaml
expect "--memory moves the warning" 0 "above the device's memory of 30.00 MB" "$tiny" --budget 33MB --memory 30MB -o same.yaml
expect "another batch size" 1 "error: batch_size" check first.yaml --profile "$tiny" --batch 2
sed 's/^resident_bytes: 12e6/resident_bytes: 13e6/' "$tiny" >other.yaml
expect "other resident bytes" 1 "first.yaml:[0-9]*:1: error: resident_bytes: 12000000.*13000000" \
    check first.yaml --profile other.yaml
sed 's/name: b, bytes: 8e6/name: b, bytes: 9e6/' "$tiny" >other.yaml
expect "another tensor" 1 "first.yaml:$(grep -n 'name: b,' first.yaml | cut -d: -f1):1: error: tensors\[2\]" \
    check first.yaml --profile other.yaml
sed 's/time_us: 80/time_us: 90/' "$tiny" >other.yaml
expect "other times" 1 "first.yaml:$(grep -n iteration_us: first.yaml | cut -d: -f1):1: error: predicted.iteration" \
    check first.yaml --profile other.yaml
sed 's/^host:.*//; s/^batch_size: 1$/batch_size: 1\nhost: {pinned_bytes: 1000}/' "$tiny" >other.yaml
if grep -q '^host_arena_bytes: 0$' first.yaml; then
    pass "less pinned memory (no host arena to judge)"
else
    expect "less pinned memory" 1 "error: host_arena_bytes" check first.yaml --profile other.yaml
fi

# damaged NAME TEXT SED-SCRIPT LINE: the check of the first plan, so changed, fails with TEXT at LINE.
damaged() {
    sed -e "$3" first.yaml >damaged.yaml
    if cmp -s first.yaml damaged.yaml; then
        fail "$1: the damage does nothing"
        return
    fi
    expect "$1" 1 "^damaged.yaml:$4:1: error: $2" check damaged.yaml --profile "$tiny"
}
line_of() {
    grep -n -e "$1" first.yaml | sed "${2:-1}q;d" | cut -d: -f1
}
line=$(line_of '\[run, gelu, forward')
damaged "a step that is missing: the next is blamed" 'program\[' "${line}d" "[0-9]*"
damaged "a step that runs twice: the second is blamed" 'program\[' "${line}{p;}" "$((line + 1))"
line=$(line_of '\[free, ')
damaged "a tensor that is freed twice: the second is blamed" 'program\[.*free' "${line}{p;}" "$((line + 1))"
line=$(line_of '\[alloc, ')
damaged "a tensor outside the arena" 'program\[' "${line}s/, [0-9]*\]/, 4096000000]/" "$line"
damaged "a time that is too good" 'predicted.iteration' 's/iteration_us: .*/iteration_us: 2330.000/; s/ gap: .*/ gap: 0.0/' \
    "$(line_of iteration_us:)"
damaged "a peak that is too low" 'predicted.peak' 's/peak_bytes: .*/peak_bytes: 1000/' "$(line_of peak_bytes:)"
damaged "a budget that is too low" 'budget_bytes' 's/^budget_bytes: .*/budget_bytes: 20000000/' \
    "$(line_of budget_bytes:)"
damaged "another decision" 'tensors\[3\]' 's/\(name: c, .*decision: \)keep/\1swap/' "$(line_of 'name: c,')"
damaged "another fingerprint" 'fingerprint' 's/^fingerprint: "sha256:..../fingerprint: "sha256:0000/' \
    "$(line_of fingerprint:)"
head -c 1000 first.yaml >damaged.yaml
expect "a plan that ends early" 3 "^damaged.yaml" check damaged.yaml --profile "$tiny"
sed 's/^  bound_us: .*/  bound_us: 2331.000/' first.yaml >damaged.yaml
if grep -q 'bound_us: 2330.000' first.yaml; then
    sed 's/  gap: .*/  gap: 0.068211/' damaged.yaml >closer.yaml
    expect "a bound that cannot be proved" 1 "error: predicted.bound_us" check closer.yaml --profile "$tiny" \
        --max-gap 10%
fi
sed 's/25e9/1e9/g' "$tiny" >slow.yaml
expect "a plan that must lose time" 0 "bound *2.40[0-9] ms" slow.yaml --budget 75% -o slow.plan.yaml
holds "carries a certificate" grep -q '^certificate: |$' slow.plan.yaml
expect "which proves its bound" 0 "proved by its certificate: 2.40" check slow.plan.yaml --profile slow.yaml \
    --max-gap 15%
expect "also where no gap is asked for" 0 "proved by its certificate: 2.40" check slow.plan.yaml --profile slow.yaml
sed '/^certificate:/,$d' slow.plan.yaml >bare.yaml
expect "without it the bound is solved for" 0 "proved anew: 2.40" check bare.yaml --profile slow.yaml --max-gap 15%
expect "or left open" 0 "not checked without --max-gap: the bound" check bare.yaml --profile slow.yaml
sed 's/^  rows 1/  rows 2/' slow.plan.yaml >damaged.yaml
expect "one for other rows is named" 0 "certificate: .*; solving for the bound again" check damaged.yaml \
    --profile slow.yaml --max-gap 15%
sed 's/^  multipliers 2^-/  multipliers 2^-1/' slow.plan.yaml >damaged.yaml
expect "a weakened one too" 0 "certificate: it proves only 2.33" check damaged.yaml --profile slow.yaml --max-gap 15%
sed 's/^  bound_us: .*/  bound_us: 2700.000/; s/^  gap: .*/  gap: 0.011111/' slow.plan.yaml >damaged.yaml
expect "and none proves what is not true" 1 "error: predicted.bound_us: 2700000 ns" check damaged.yaml \
    --profile slow.yaml --max-gap 15%

echo "# show"
expect "a summary and pictures" 0 "arena: offset" show first.yaml
holds "in plain ASCII" sh -c '! LC_ALL=C grep -q "[^ -~]" stdout'
expect "as wide as it is told" 0 "" show first.yaml --width 60
tail -n +9 stdout >picture
holds "and not wider" sh -c '! grep -Eq "^.{61}" picture'
if [ -f "$large" ]; then
    expect "a large plan" 0 "k keep, s swap, r recompute" show out/plan.yaml --width 100
fi
sed '/restored, /d' first.yaml >damaged.yaml
expect "a damaged plan is shown with a warning" 0 "" show damaged.yaml

echo "# report"
expect "numbers in a file" 0 "" "$tiny" --budget 100% -o out/plan.yaml --report report.json
holds "on one line of JSON" sh -c 'grep -c . report.json | grep -qx 1 && grep -q "^{.*\"rows\": [0-9]*.*}$" report.json'
holds "that are the plan's" grep -q '"least_budget_bytes": 28000000.*"iteration_ns": 2330000' report.json
expect "a report that cannot be written" 3 "missing/report.json" "$tiny" --budget 100% -o out/plan.yaml \
    --report missing/report.json

expect "a plan for scripts" 0 '^"iteration_ns":[0-9]*,$' show first.yaml --json
expect "a damaged plan's JSON has a warning beside it" 0 "does not pass its check" show damaged.yaml --json

echo "# trace"
expect "trace needs a profile" 2 "trace needs --profile" trace first.yaml
expect "a timeline" 0 '"ph":"X"' trace first.yaml --profile "$tiny"
expect "into a file" 0 "" trace first.yaml --profile "$tiny" -o trace.json
holds "with the same bytes" sh -c "'$planner' trace first.yaml --profile '$tiny' | cmp - trace.json"
expect "no timeline of a damaged plan" 1 "program" trace damaged.yaml --profile "$tiny" -o damaged.json
cp first.yaml own.yaml
expect "a timeline does not replace its plan" 2 "would replace" trace own.yaml --profile "$tiny" -o own.yaml
expect "nor its profile" 2 "would replace" trace first.yaml --profile own.yaml -o own.yaml
expect "nor of another profile's" 1 "in the plan" trace first.yaml --profile "$large" -o damaged.json
holds "and no file" test ! -e damaged.json

echo "# diff"
expect "a plan is the plan itself" 0 "^the plans are the same$" diff first.yaml first.yaml
"$planner" "$tiny" --budget 100% -q -o roomy.yaml
expect "what another budget changes" 1 "^first difference: budget_bytes$" diff first.yaml roomy.yaml
expect "for scripts" 1 '^"first_difference":"budget_bytes",$' diff first.yaml roomy.yaml --json
sed 's/bytes: 8000000/bytes: 8000001/; s/bytes: 8e6/bytes: 7e6/' "$tiny" >other-profile.yaml
"$planner" other-profile.yaml --budget 100% -q -o other.yaml
expect "plans of two models are refused" 3 "for different models" diff first.yaml other.yaml
expect "unless one insists" 1 "^first difference: fingerprint$" diff first.yaml other.yaml --force
expect "a file that is not there" 3 "cannot" diff first.yaml none.yaml

echo "# emit"
expect "emit needs a language" 2 "emit needs a language" emit first.yaml
expect "a plan as C" 0 "^const struct atp_plan plan = {$" emit --c first.yaml
expect "under a name" 0 "^extern const struct atp_plan my_net;$" emit --c first.yaml --name my_net
expect "C does not replace its plan" 2 "would replace" emit --c own.yaml -o own.yaml
holds "which is as it was" cmp first.yaml own.yaml
expect "no C of a damaged plan" 1 "program" emit --c damaged.yaml

echo "# import"
printf 'name,forward_us,backward_us,output_bytes,saved_bytes\nlinear,400,800,8e6,0\nloss,10.5,20,4,8e6\n' >layers.csv
import="import --csv layers.csv --batch 8 --device-memory 40MB --copy-rate 25GB"
# shellcheck disable=SC2086 # words
expect "import needs all numbers of the device" 2 "import needs --resident SIZE" $import
# shellcheck disable=SC2086
expect "a share is no number of the device" 2 "not a share" $import --resident 50%
import="$import --resident 12MB"
keep="$(ls -A out)"
# shellcheck disable=SC2086
expect "a profile of layers" 0 "a chain is assumed" $import --input 4MB --update-us 50 -o layers.yaml
expect "which can be planned" 0 "bound" layers.yaml --budget 100% -o out/plan.yaml
# shellcheck disable=SC2086
expect "quietly, on standard output" 0 "^model: layers$" $import -q
holds "quietly" test ! -s stderr
sed 's/8e6$/8x6/' layers.csv >bad.csv
expect "a number that is none has its place" 3 '^bad.csv:3:16: rows\[1\].saved_bytes: ' import --csv bad.csv --batch 8 \
    --device-memory 40MB --copy-rate 25GB --resident 0 -o bad.yaml
holds "and leaves no file" test ! -e bad.yaml
# shellcheck disable=SC2086
expect "a profile does not replace its layers" 2 "would replace" $import -o layers.csv

expect "import needs to know what the file is" 2 "one of --csv and --pytorch" import trace.json --batch 8
expect "which cannot be two things" 2 "one of --csv and --pytorch" import trace.json --csv --pytorch
cat >trace.json <<'JSON'
{"traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "aten::linear", "tid": 1, "ts": 100, "dur": 50, "args": {"Sequence number": 4,
  "Input Dims": [[4, 8]], "Input type": ["float"]}},
{"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "tid": 1, "ts": 120, "args": {"Bytes": 256, "Addr": 16, "Device Type": 0}},
{"ph": "X", "cat": "cpu_op", "name": "autograd::engine::evaluate_function: AddmmBackward0", "tid": 1, "ts": 200, "dur": 70,
  "args": {"Sequence number": 4}},
{"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "tid": 1, "ts": 220, "args": {"Bytes": -256, "Addr": 16, "Device Type": 0}}
]}
JSON
import="import --pytorch trace.json --batch 8 --device-memory 40MB --copy-rate 25GB --resident 12MB"
# shellcheck disable=SC2086
expect "layers have an input, a trace has its own" 2 "are for --csv" $import --input 4MB
# shellcheck disable=SC2086
expect "a profile of a trace" 0 "Not in it: weights" $import -o traced.yaml
expect "which can be planned too" 0 "bound" traced.yaml --budget 100% -o out/plan.yaml
sed 's/"ts": 220/"ts": "x"/' trace.json >bad.json
expect "an event that is wrong has its place" 3 '^bad.json:7:1: traceEvents\[3\]: ts is no time' import --pytorch bad.json \
    --batch 8 --device-memory 40MB --copy-rate 25GB --resident 0 -o bad.yaml
holds "and leaves no file behind" test ! -e bad.yaml

echo "# compare"
expect "compare needs a budget" 2 "--budget 40000000" compare "$tiny"
expect "compare needs a profile" 2 "compare needs a profile" compare --budget 1GB
expect "compare below the least budget" 1 "least budget is 28000000" compare "$tiny" --budget 27MB
expect "and what blocks it" 1 "most needed .* a 8.00 MB, b 8.00 MB" compare "$tiny" --budget 27MB
expect "a table of policies" 0 "^swap-recompute .* ms .* MB .* fits$" compare "$tiny" --budget 75%
holds "and the plan" grep -q "^plan .* fits$" stdout
holds "in 80 columns" sh -c '! grep -Eq "^.{81}" stdout'
expect "as CSV" 0 "^policy,result,iteration_ns,overhead," compare "$tiny" --budget 75% --csv
holds "with as many values in each line" awk -F, 'NF != 8 { exit 1 }' stdout
# shellcheck disable=SC2016 # fields of awk
holds "the plan is as fast as the fastest policy" awk -F, '
    $2 == "fits" && $1 != "plan" && (least == "" || $3 < least) { least = $3 }
    $1 == "plan" { plan = $3 }
    END { exit !(plan > 0 && plan <= least) }' stdout
expect "what does not fit has no time" 0 "^keep-all,over budget,,,,,40000000,0$" compare "$tiny" --budget 75% --csv

echo "# a page"
"$planner" "$tiny" --budget 75% -q -o tiny.plan
sed 's/stall_us: [0-9]*/stall_us: 1/' tiny.plan >wrong.plan
expect "a report needs a plan" 2 "report needs a plan" report --profile "$tiny"
expect "a report needs a profile" 2 "report needs --profile" report tiny.plan
expect "a page does not replace its plan" 2 "would replace" report tiny.plan --profile "$tiny" -o tiny.plan
expect "nor its profile" 2 "would replace" report tiny.plan --profile "$tiny" -o "$tiny"
expect "a page of another profile" 1 "tiny.plan: error: " report tiny.plan --profile "$large" --no-policies -o out/page.html
expect "a page with wrong numbers" 1 "wrong.plan: error: .*stall_ns" report wrong.plan --profile "$tiny" -o out/page.html
expect "a page that cannot be written" 3 "cannot" report tiny.plan --profile "$tiny" -o missing/page.html
expect "a page goes to standard output" 0 "^<!DOCTYPE html>$" report tiny.plan --profile "$tiny"
holds "with the policies" grep -q "swap-recompute" stdout
expect "or without them" 0 "</html>" report tiny.plan --profile "$tiny" --no-policies
holds "as asked" sh -c '! grep -q "id=.policies." stdout'

echo "# sweep"
expect "a sweep of one point is refused" 2 "--points" sweep "$tiny" --points 1
expect "a sweep takes no budget" 2 "sweep has no option --budget" sweep "$tiny" --budget 1GB
expect "a table of budgets" 0 "^ *28.00 MB .* ms .* %  #*$" sweep "$tiny" --points 3
holds "up to all that is needed" grep -q "^ *40.00 MB *100.00 % *2.330 ms *0.00 %" stdout
expect "as CSV" 0 "^budget_bytes,share,iteration_ns,overhead," sweep "$tiny" --points 4 --csv
holds "with a line for each budget" test "$(grep -c '^[0-9]*,' stdout)" = 4
# shellcheck disable=SC2016 # fields of awk
holds "smaller budgets are no faster" awk -F, 'NR > 2 && ($1 >= budget || $3 < time) { exit 1 }
    NR > 1 { budget = $1; time = $3 }' stdout
# shellcheck disable=SC2016 # fields of awk
holds "and every time is above its bound" awk -F, 'NR > 1 && ($3 < $5 || $5 < 2330000) { exit 1 }' stdout
expect "a sweep at another batch size" 0 "batch size 2" sweep "$tiny" --points 2 --batch 2

echo "# peak"
expect "a peak needs a budget" 2 "the device has --budget 40000000" peak "$tiny"
expect "which is no share" 2 "a share means other bytes at every batch size" peak "$tiny" --budget 60%
expect "a peak is of all batch sizes" 2 "peak has no option --batch" peak "$tiny" --budget 60MB --batch 2
expect "an empty range is refused" 2 '"5..3" is empty' peak "$tiny" --budget 60MB --range 5..3
expect "and what is no range" 2 "expected two numbers: 8..64" peak "$tiny" --budget 60MB --range 5
expect "and a range without a multiple" 2 "no multiple of 8" peak "$tiny" --budget 60MB --range 1..7 --multiple 8
expect "and a global batch that nothing divides" 2 "divides the global batch of 7" \
    peak "$tiny" --budget 60MB --range 2..3 --global-batch 7
expect "the least budget is named" 1 "the least budget is 28000000, at batch size 1" peak "$tiny" --budget 27MB
expect "a plan that cannot be written is refused first" 3 "cannot write" peak "$tiny" --budget 60MB -o missing/p.yaml
cp "$tiny" same.yaml
expect "and one that would replace its profile" 2 "would replace" peak same.yaml --budget 60MB -o same.yaml
expect "a curve over batch sizes" 0 "^ *2 *1.13x .* 433.84 .* 433.84 .* compute *#*  peak$" peak "$tiny" --budget 60MB
holds "with a peak" grep -q "^peak  *batch size 2, 433.84 samples/s" stdout
holds "and its proof" grep -q "^proof  *no other batch size can be faster by more than 0.00 %" stdout
holds "beside the largest batch size without a plan" grep -q "batch size 1 is the largest.* 1.011 times" stdout
holds "and every policy" grep -q "^checkpoint-best .* [0-9.]*x$" stdout
holds "in 100 columns" sh -c '! grep -Eq "^.{101}" stdout'
holds "and a word on how it was scaled" grep -q "warning: one batch size was measured" stderr
expect "the best plan is written" 0 "" peak "$tiny" --budget 60MB -q -o out/plan.yaml
holds "and is right" "$planner" check out/plan.yaml --profile "$tiny" --batch 2
expect "a peak with another link needs it for the check" 0 "check it with --d2h 99000000000 --h2d 98000000000" \
    peak "$tiny" --budget 60MB --d2h 99GB/s --h2d 98e9 -o fast.yaml
expect "which then holds" 0 "its numbers are true" check fast.yaml --profile "$tiny" --d2h 99GB/s --h2d 98e9
expect "copies limit the largest batch" 0 "^plan,3,.*,H2D,.*,333.7041," peak "$tiny" --budget 60MB --csv -q
expect "which a faster link trains faster" 0 "^plan,3,.*,413.5856," \
    peak "$tiny" --budget 60MB --csv -q --d2h 99GB/s --h2d 99GB/s
expect "a smaller card is below the budget" 0 "above the device's memory of 30.00 MB" \
    peak "$tiny" --budget 60MB --memory 30MB --range 1..1
expect "as CSV" 0 "^policy,batch_size,role,limit," peak "$tiny" --budget 60MB --csv
cp stdout first
# shellcheck disable=SC2016 # fields of awk
holds "with as many values in each line" awk -F, 'NF != 15 { exit 1 }' stdout
# shellcheck disable=SC2016 # fields of awk
holds "model, bound and plan in order" awk -F, '$1 == "plan" && !($7 >= $9 && $9 >= $11) { exit 1 }' stdout
expect "the same again" 0 "" peak "$tiny" --budget 60MB --csv
holds "to the byte" cmp -s stdout first
expect "update steps count once for a global batch" 0 "6 samples between two updates" \
    peak "$tiny" --budget 60MB --global-batch 6
holds "so that the smallest batch is as good" grep -q "^ *1 .* 437.00 .* 437.00 " stdout

echo "# merge"
sed 's/^batch_size: 1$/batch_size: 2/; s/time_us: 80/time_us: 90/' "$tiny" >two.yaml
expect "two batch sizes become one profile" 0 "" merge two.yaml "$tiny" -o both.yaml -q
holds "with both, ascending" grep -q "^batch_sizes: \[1, 2\]$" both.yaml
expect "which plans as the first does" 0 "" both.yaml --batch 1 --budget 75% -q -o merged.plan.yaml
holds "byte for byte" cmp first.yaml merged.plan.yaml
expect "merge says what is fixed and what grows" 0 "^  iteration .* a sample$" merge "$tiny" two.yaml -o both.yaml
holds "and what a step costs at least" grep -q "^  a step .* fixed" stderr
holds "on standard error alone" test ! -s stdout
expect "a merged profile has a peak" 0 "^peak " peak both.yaml --budget 60MB --range 1..2 -q
sed 's/^batch_size: 2$/batch_size: 3/; s/d2h_bytes_per_second: [0-9e.]*/d2h_bytes_per_second: 5e9/; s/time_us: 100/time_us: 0/' \
    two.yaml >three.yaml
expect "links that differ are warned about" 0 "merged: warning: the links differ" merge "$tiny" two.yaml three.yaml
holds "and steps without time" grep -q "merged: warning: 2 of 9 steps take no time" stderr
holds "and steps off the line" grep -q "merged: warning: 2 steps, up to .* are not on a line .* off by 100.00 % at 3" stderr
holds "the lowest rate is taken" grep -q "d2h_bytes_per_second: 5000000000" stdout
expect "a merged profile does not replace its parts" 2 "would replace two.yaml" merge "$tiny" two.yaml -o two.yaml
expect "merge needs two profiles" 2 "merge needs two profiles or more" merge "$tiny"
expect "a batch size twice is refused" 3 "batch_size: 1 is in" merge "$tiny" "$tiny" -o none.yaml
sed 's/name: gelu/name: relu/' two.yaml >other.yaml
expect "the first difference has a place" 3 "^other.yaml:[0-9]*:[0-9]*: steps\[1\].name: this is \"relu\", expected \"gelu\"" \
    merge "$tiny" other.yaml -o none.yaml
holds "and nothing is written" test ! -e none.yaml

echo "$passed passed, $failed failed"
test $failed -eq 0
