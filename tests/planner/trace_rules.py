#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
#
# A trace keeps the rules of its format: "Trace Event Format" (Google, 2016,
# https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU), by the sections named below. Then
# that it says what the plan's header says.
#
#   trace_rules.py ATP-PLAN PROFILES   plans shipped profiles and judges their traces; --self-test: the judge itself
import copy
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

NUMBER = (int, float)
# "Event Descriptions": what events of each phase must have, by the phases that atp-plan writes.
REQUIRED = {
    "X": {"name": str, "cat": str, "ts": NUMBER, "dur": NUMBER, "pid": int, "tid": int},  # Complete Events
    "C": {"name": str, "ts": NUMBER, "pid": int, "args": dict},  # Counter Events
    "s": {"name": str, "cat": str, "ts": NUMBER, "pid": int, "tid": int, "id": int},  # Flow Events
    "f": {"name": str, "cat": str, "ts": NUMBER, "pid": int, "tid": int, "id": int},
    "M": {"name": str, "pid": int, "args": dict},  # Metadata Events
}
# "Metadata Events": the five names and the argument that each has.
METADATA = {"process_name": "name", "process_labels": "labels", "process_sort_index": "sort_index",
            "thread_name": "name", "thread_sort_index": "sort_index"}


def encloses(slices, event):
    return any(s["ts"] <= event["ts"] <= s["ts"] + s["dur"] for s in slices.get((event["pid"], event["tid"]), []))


def check_flows(events, slices, complain):
    """"Flow Events": s and f with one category, name and id are an arrow; it needs a slice to end in."""
    starts, ends = {}, {}
    for event in events:
        if event["ph"] in "sf":
            side = starts if event["ph"] == "s" else ends
            key = (event["cat"], event["name"], event["id"])
            if key in side:
                complain(f"two flow events {event['ph']} of {key}")
            side[key] = event
    for key in starts.keys() ^ ends.keys():
        complain(f"half of an arrow: {key}")
    for key in starts.keys() & ends.keys():
        start, end = starts[key], ends[key]
        if start["ts"] > end["ts"]:
            complain(f"an arrow to the past: {key}")
        if not encloses(slices, start):
            complain(f"an arrow from no slice: {key}")
        track = slices.get((end["pid"], end["tid"]), [])
        if end.get("bp") == "e" and not encloses(slices, end):
            complain(f"an arrow with bp e to no enclosing slice: {key}")
        if "bp" not in end and not any(s["ts"] >= end["ts"] for s in track):
            complain(f"an arrow with no next slice: {key}")
    return len(starts)


def check_slices(slices, complain):
    """"Complete Events" of one thread nest; ours are engines, which do one thing at a time. Times are whole ns."""
    for track, items in slices.items():
        ordered = sorted(items, key=lambda s: (s["ts"], s["dur"]))
        for a, b in zip(ordered, ordered[1:]):
            if round((a["ts"] + a["dur"]) * 1000) > round(b["ts"] * 1000):
                complain(f"slices of {track} overlap: {a['name']}, {b['name']}")


def check_event(event, complain):
    phase = event.get("ph")
    if phase not in REQUIRED:
        complain(f"an event of phase {phase!r}")
        return False
    good = True
    for key, kind in REQUIRED[phase].items():
        if not isinstance(event.get(key), kind) or isinstance(event.get(key), bool):
            complain(f"{phase} {event.get('name')!r}: {key} is {event.get(key)!r}")
            good = False
    if not good:
        return False
    if event.get("ts", 0) < 0 or event.get("dur", 0) < 0:
        complain(f"{event['name']}: a time below zero")
    if phase == "C" and not (event["args"] and all(isinstance(v, NUMBER) for v in event["args"].values())):
        complain(f"{event['name']}: a counter's arguments are numbers")
    if phase == "M" and METADATA.get(event["name"]) not in event["args"]:
        complain(f"metadata {event['name']} with {event['args']}")
    if phase == "f" and event.get("bp", "e") != "e":
        complain(f"{event['name']}: bp is {event['bp']!r}")
    return True


def judge(trace):
    """All breaches, as text, and some counts."""
    bad = []
    events = trace.get("traceEvents")
    if not isinstance(events, list) or trace.get("displayTimeUnit") not in ("ms", "ns"):
        return ["JSON Object Format: traceEvents is a list, displayTimeUnit ms or ns"], {}
    if not all([check_event(event, bad.append) for event in events]):
        return bad, {}
    slices, named = {}, set()
    for event in events:
        if event["ph"] == "X":
            slices.setdefault((event["pid"], event["tid"]), []).append(event)
        if event["ph"] == "M" and event["name"] == "thread_name":
            named.add((event["pid"], event["tid"]))
    check_slices(slices, bad.append)
    bad += [f"no name for track {track}" for track in slices.keys() - named]
    counters = [event["ts"] for event in events if event["ph"] == "C"]
    if counters != sorted(set(counters)):
        bad.append("the counter goes back in time or twice to one moment")
    return bad, {"arrows": check_flows(events, slices, bad.append), "slices": slices, "named": named}


def total(slices, track, category=None):
    return round(sum(s["dur"] * 1000 for s in slices.get((1, track), []) if category in (None, s["cat"])))


def check_against_plan(planner, plan, trace, found):
    said = json.loads(subprocess.run([planner, "show", "--json", plan], check=True, capture_output=True).stdout)
    slices = found["slices"]
    end = max(round((s["ts"] + s["dur"]) * 1000) for s in slices[(1, 1)])
    live = max(e["args"]["live_bytes"] for e in trace["traceEvents"] if e["ph"] == "C")
    rows = [("iteration_ns", end, said["iteration_ns"]),
            ("stall_ns", total(slices, 1, "stall"), said["stall_ns"]),
            ("recompute_ns", total(slices, 1, "rerun"), said["recompute_ns"]),
            ("evicted_bytes", sum(s["args"]["bytes"] for s in slices.get((1, 2), [])), said["evicted_bytes"]),
            ("restored_bytes", sum(s["args"]["bytes"] for s in slices.get((1, 3), [])), said["restored_bytes"]),
            ("peak_bytes", live, said["peak_bytes"])]
    return [f"{key}: {a} in the trace, {b} in the plan" for key, a, b in rows if a != b]


def self_test():
    """Each kind of damage is seen."""
    copy_slice = {"name": "c", "cat": "copy", "ph": "X", "ts": 0, "dur": 2, "pid": 1, "tid": 2}
    wait = {"name": "w", "cat": "stall", "ph": "X", "ts": 1, "dur": 1, "pid": 1, "tid": 1}
    start = {"name": "a", "cat": "w", "ph": "s", "ts": 0, "pid": 1, "tid": 2, "id": 1}
    end = {"name": "a", "cat": "w", "ph": "f", "ts": 1, "pid": 1, "tid": 1, "id": 1, "bp": "e"}
    names = [{"name": "thread_name", "ph": "M", "pid": 1, "tid": t, "args": {"name": "t"}} for t in (1, 2)]
    count = {"name": "m", "ph": "C", "ts": 0, "pid": 1, "args": {"b": 1}}
    good = {"displayTimeUnit": "ms", "traceEvents": [copy_slice, wait, start, end, *names, count]}
    assert judge(good)[0] == [], judge(good)
    damages = [(0, "dur", None), (0, "ts", -1), (1, "ph", "Z"), (2, "ts", 9), (3, "id", 2), (3, "bp", "x"),
               (3, "ts", 7), (4, "args", {}), (5, "tid", 3), (6, "args", {"b": "1"}), (1, "tid", 2), (6, "pid", "1")]
    for index, key, value in damages:
        bad = copy.deepcopy(good)
        bad["traceEvents"][index][key] = value
        assert judge(bad)[0], f"damage is not seen: {index} {key} {value}"


def main():
    self_test()
    planner, profiles = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        for name, budget in [("tiny", "75%"), ("mlp_b32_cpu-recorded", "60%"), ("resnet50_b64_v100-modelled", "70%")]:
            profile, plan, out = profiles / f"{name}.yaml", f"{scratch}/{name}.plan.yaml", f"{scratch}/{name}.json"
            subprocess.run([planner, profile, "--budget", budget, "-o", plan, "-q", "--time-limit", "2"], check=True)
            subprocess.run([planner, "trace", plan, "--profile", profile, "-o", out], check=True)
            text = Path(out).read_text()
            again = subprocess.run([planner, "trace", plan, "--profile", profile], check=True, capture_output=True)
            bad, found = judge(json.loads(text))
            if again.stdout.decode() != text:
                bad.append("a second trace has other bytes")
            if re.search(r'"(ts|dur)":(?!\d+\.\d{3}[,}])', text):
                bad.append("a time without three decimals")
            if not bad:
                bad = check_against_plan(planner, plan, json.loads(text), found)
            for line in bad:
                print(f"{name}: {line}")
            print(f"{name}: {len(bad)} breaches, {found.get('arrows')} arrows, {len(text)} bytes")
            failed = failed or bool(bad) or found["arrows"] == 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
