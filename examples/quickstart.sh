#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# From a fresh Debian 12 to a proven plan and a training run that uses one. Run it from anywhere, as often as you like:
#
#   sh examples/quickstart.sh
#
# Installs what is missing (as root or with sudo), builds in build/, and leaves its files in build/quickstart/.
set -eu

budget=${ATP_BUDGET:-50%}
iterations=20

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
out=build/quickstart
planner=build/planner/atp-plan
mlp=build/examples/mlp/mlp
profile=profiles/gpt2-small_b8_v100-modelled.yaml

header() {
    printf '\n== %s\n' "$*"
}

# Shows a command as one would type it, then runs it.
show() {
    printf '$ %s\n' "$*"
    "$@"
}

# The same, with the results in a file of which the last line is shown.
show_into() {
    file=$1
    shift
    printf '$ %s > %s\n' "$*" "$file"
    "$@" >"$file"
    tail -n 1 "$file"
}

# Builds are long and dull: their words are shown when they fail.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly() {
    printf '$ %s\n' "$*"
    if ! "$@" >"$log" 2>&1; then
        cat "$log" >&2
        printf 'quickstart: failed: %s\n' "$*" >&2
        exit 1
    fi
}

header "1. Packages"
sh .ci/packages.sh .ci/packages
echo "all there"

header "2. Build"
if [ ! -f build/build.ninja ]; then
    quietly meson setup build
fi
quietly ninja -C build planner/atp-plan examples/mlp/mlp
mkdir -p "$out"

header "3. Plan GPT-2 small: the resident bytes and $budget of what its activations need"
show "$planner" "$profile" --budget "$budget" -o "$out/gpt2.plan.yaml"

header "4. Prove the plan: it fits, reads the right bytes at any timing, and its numbers are true"
show "$planner" check "$out/gpt2.plan.yaml" --profile "$profile"

header "5. Look at it"
show "$planner" show "$out/gpt2.plan.yaml"

header "6. A training program: train as it is, and record its profile"
show_into "$out/mlp.losses" "$mlp" --iterations "$iterations" --print-losses
show "$mlp" --iterations "$iterations" --record "$out/mlp.profile.yaml"

header "7. Plan it with $budget of its activation memory, prove the plan, train with it"
show "$planner" "$out/mlp.profile.yaml" --budget "$budget" -o "$out/mlp.plan.yaml"
show "$planner" check "$out/mlp.plan.yaml" --profile "$out/mlp.profile.yaml"
show_into "$out/mlp.planned.losses" "$mlp" --iterations "$iterations" --print-losses --plan "$out/mlp.plan.yaml"
if [ ! -s "$out/mlp.losses" ] || ! cmp "$out/mlp.losses" "$out/mlp.planned.losses"; then
    echo "quickstart: the losses differ: $out/mlp.losses, $out/mlp.planned.losses" >&2
    exit 1
fi
echo "all $iterations losses are the same, bit for bit"

header "Done"
cat <<SUMMARY
planner         $planner (--help; man page: man -l planner/atp-plan.1)
GPT-2's plan    $out/gpt2.plan.yaml
the example     $mlp, source in examples/mlp/
its files       $out/mlp.profile.yaml, mlp.plan.yaml, mlp.losses, mlp.planned.losses
next            README.md: integrate your program, or plan a profile of your own (formats: schemas/)
all tests       sh tests/run.sh
SUMMARY
