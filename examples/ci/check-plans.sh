#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks every NAME.plan.yaml of a folder against the NAME.profile.yaml beside it, for continuous integration: proves the
# plan, its numbers, and that no plan could be faster by more than the gap. What is wrong is one line each on standard
# error, FILE:LINE:COLUMN: MESSAGE; the exit status is the verdict.
#
#   sh check-plans.sh ATP-PLAN FOLDER MAX-GAP [REPORT]
#
# REPORT, for GitLab: the same findings as a Code Quality report, JSON.
set -eu

planner=${1:?usage: check-plans.sh ATP-PLAN FOLDER MAX-GAP [REPORT]}
folder=${2:?usage: check-plans.sh ATP-PLAN FOLDER MAX-GAP [REPORT]}
gap=${3:?usage: check-plans.sh ATP-PLAN FOLDER MAX-GAP [REPORT]}
report=${4:-}

findings=$(mktemp)
trap 'rm -f "$findings"' EXIT
verdict=0
plans=0
for plan in "$folder"/*.plan.yaml; do
    [ -e "$plan" ] || continue
    plans=$((plans + 1))
    "$planner" check "$plan" --profile "${plan%.plan.yaml}.profile.yaml" --max-gap "$gap" 2>>"$findings" || verdict=1
done
cat "$findings" >&2
if [ "$plans" -eq 0 ]; then
    echo "check-plans.sh: there is no $folder/*.plan.yaml" >&2
    exit 2
fi
if [ -n "$report" ]; then
    awk '
        function quote(text) {
            gsub(/["\\]/, "\\\\&", text)
            return "\"" text "\""
        }
        BEGIN { printf "[" }
        match($0, /:[0-9]+:[0-9]+: /) {
            path = substr($0, 1, RSTART - 1)
            split(substr($0, RSTART + 1), place, ":")
            message = substr($0, RSTART + RLENGTH)
            severity = message ~ /^warning: / ? "minor" : "critical"
            printf "%s\n  {\"description\": %s, \"check_name\": \"atp-plan\", ", count++ ? "," : "", quote(message)
            printf "\"fingerprint\": %s, \"severity\": \"%s\", ", quote(path ": " message), severity
            printf "\"location\": {\"path\": %s, \"lines\": {\"begin\": %d}}}", quote(path), place[1]
        }
        END { print "\n]" }' "$findings" >"$report"
fi
exit $verdict
