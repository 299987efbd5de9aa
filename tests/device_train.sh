#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Records a training, plans it and replays the plan: device_train.sh DEVICE_TRAIN ATP_PLAN BUDGET [ARGUMENT...]
# The arguments are those of device-train, the same for both. Without a device it is skipped (77).
set -eu
device_train=$1
atp_plan=$2
budget=$3
shift 3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$device_train" record "$folder/profile.yaml" "$@"
grep '^# Medians' "$folder/profile.yaml" | sed 's/^# /profile: /'
"$atp_plan" solve "$folder/profile.yaml" --budget "$budget" -q -o "$folder/plan.yaml"
"$atp_plan" check "$folder/plan.yaml" --profile "$folder/profile.yaml"
"$device_train" replay "$folder/plan.yaml" "$@"
