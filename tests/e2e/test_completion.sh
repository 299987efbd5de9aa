#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What bash proposes behind the words of a command line. "N passed, N failed" at the end, and the exit status is the
# verdict.
#
#   bash tests/e2e/test_completion.sh ATP-PLAN COMPLETION.SH
set -u

planner=$(realpath "${1:?usage: test_completion.sh ATP-PLAN COMPLETION.SH}")
script=$(realpath "${2:?usage: test_completion.sh ATP-PLAN COMPLETION.SH}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/work"
cd "$scratch/work" || exit 1
touch plan.yaml profile.yaml
# Those of the usage, not of the list that the script reads.
commands=$("$planner" --help | sed -n 's/^\(usage:\|      \) atp-plan \[\{0,1\}\([a-z]*\).*/\2/p')
# shellcheck disable=SC1090 # given
. "$script"
passed=0
failed=0

# proposes NAME PROPOSALS WORD...: for the last word, all proposals in order, one blank between them.
proposes() {
    local name=$1 wanted=$2 got
    shift 2
    COMP_WORDS=("$planner" "$@")
    COMP_CWORD=$#
    COMPREPLY=()
    _atp_plan 2>../stderr
    got=$(printf '%s\n' "${COMPREPLY[@]}" | sort | tr '\n' ' ')
    if [[ ${got% } == "$wanted" && ! -s ../stderr ]]; then
        passed=$((passed + 1))
        echo "ok      $name"
    else
        failed=$((failed + 1))
        echo "FAILED  $name: \"${got% }\", expected \"$wanted\""
        cat ../stderr
    fi
}

everything=$(printf '%s\n' "$commands" plan.yaml profile.yaml | sort | tr '\n' ' ')
proposes "commands and files" "${everything% }" ''
proposes "the rest of a command" "trace" tra
proposes "files behind a command" "plan.yaml profile.yaml" trace p
proposes "no command behind a command" "" trace sho
proposes "options of the command" "--name" emit --c --n
proposes "of no other command" "" show --pro
proposes "those of solve without a command" "--budget" --bu
proposes "files for an option that takes one" "profile.yaml" trace plan.yaml --profile pr
proposes "also behind =" "profile.yaml" trace plan.yaml --profile = pr
proposes "also for -o" "plan.yaml" emit --c -o pl
proposes "nothing for a number" "" sweep profile.yaml --points ''
for command in $commands; do
    options=$("$planner" "$command" --help | grep -oE '^  --[a-z0-9-]+' | tr -d ' ' | sort | tr '\n' ' ')
    proposes "every option of $command" "${options% }" "$command" --
done

echo "$passed passed, $failed failed"
((failed == 0))
