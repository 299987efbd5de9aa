#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Schema and reader give the same verdict on good and bad documents; shipped profiles and the examples of the page
that describes the formats are good.

    agree.py READ_FILE FUZZ_CORPUS SCHEMAS PROFILES     exit status 77: python3-jsonschema or python3-yaml is missing
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import jsonschema
    import yaml
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)


class Loader(yaml.SafeLoader):
    """YAML 1.1, but numbers as in YAML 1.2: 12e9 is one."""


Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("0123456789"))

# (what, old text, new text): each edit of the good document makes it bad.
BAD_PROFILE = [
    ("another version", "atp_profile: 1", "atp_profile: 2"),
    ("no version", "atp_profile: 1\n", ""),
    ("no model", "model: m\n", ""),
    ("empty model", "model: m", "model: ''"),
    ("unknown key at the top", "model: m", "model: m\nmodels: 1"),
    ("control character", "model: m", 'model: "a\\u0007"'),
    ("no device", "device:", "devices:"),
    ("no rate", "d2h_bytes_per_second: 12e9, ", ""),
    ("zero rate", "d2h_bytes_per_second: 12e9", "d2h_bytes_per_second: 0"),
    ("broken rate", "d2h_bytes_per_second: 12e9", "d2h_bytes_per_second: 1.5"),
    ("infinite rate", "d2h_bytes_per_second: 12e9", "d2h_bytes_per_second: .inf"),
    ("no memory", "memory_bytes: 16e9", "memory_bytes: 0"),
    ("negative latency", "copy_latency_us: 10", "copy_latency_us: -1"),
    ("unknown key of the device", "copy_latency_us", "alignment"),
    ("empty host", "{pinned_bytes: 64e9}", "{}"),
    ("no batch size", "batch_size: 4\n", ""),
    ("both batch sizes", "batch_size: 4", "batch_size: 4\nbatch_sizes: [4]"),
    ("zero batch size", "batch_size: 4", "batch_size: 0"),
    ("batch size as text", "batch_size: 4", "batch_size: '4'"),
    ("no batch sizes", "batch_size: 4", "batch_sizes: []"),
    ("negative bytes", "resident_bytes: 1000", "resident_bytes: -1"),
    ("too many bytes", "resident_bytes: 1000", "resident_bytes: 5000000000000000000"),
    ("bytes as text", "resident_bytes: 1000", "resident_bytes: many"),
    ("null bytes", "resident_bytes: 1000", "resident_bytes:"),
    ("empty series", "resident_bytes: 1000", "resident_bytes: []"),
    ("half bytes", "{name: x, bytes: 64", "{name: x, bytes: 0.5"),
    ("unknown decision", "decide: swap", "decide: drop"),
    ("tensor without bytes", "{name: x, bytes: 64}", "{name: x}"),
    ("tensor as text", "{name: x, bytes: 64}", "x"),
    ("unknown phase", "phase: update", "phase: sideways"),
    ("negative time", "time_us: 35.12", "time_us: -35.12"),
    ("time as text", "time_us: 35.12", "time_us: soon"),
    ("too much time", "time_us: 35.12", "time_us: 2000000000000"),
    ("no time", "time_us: 35.12, ", ""),
    ("no reads", "reads: [x], ", ""),
    ("reads one name", "reads: [x]", "reads: x"),
    ("reads twice", "reads: [x]", "reads: [x, x]"),
    ("unknown rerun", "rerun: never", "rerun: sometimes"),
    ("negative workspace", "workspace_bytes: 7", "workspace_bytes: -7"),
    ("unknown key of a step", "workspace_bytes: 7", "workspace: 7"),
    ("no steps", re.compile(r"steps:.*", re.S), "steps: []\n"),
    ("steps as a map", re.compile(r"steps:.*", re.S), "steps: {}\n"),
    ("a list", re.compile(r".*", re.S), "[]"),
]
GOOD_PROFILE = [
    ("as it is", "", ""),
    ("whole number in e notation", "resident_bytes: 1000", "resident_bytes: 1.5e3"),
    ("whole number with a point", "resident_bytes: 1000", "resident_bytes: 1000.0"),
    ("an origin", "model: m", "model: m\norigin: |\n  measured\n  by hand"),
    ("duplex rates", "copy_latency_us: 10", "d2h_duplex_bytes_per_second: 1, h2d_duplex_bytes_per_second: 9e9"),
    ("no host", "host: {pinned_bytes: 64e9}\n", ""),
    ("a series", "batch_size: 4\nresident_bytes: 1000", "batch_sizes: [4, 8]\nresident_bytes: [1, 2]"),
    ("a name in another script", "model: m", "model: \u5c42"),
]
BAD_PLAN = [
    ("another version", "atp_plan: 1", "atp_plan: 0"),
    ("unknown key at the top", "model: m", "model: m\nextra: 1"),
    ("short fingerprint", "sha256:00", "sha256:0"),
    ("upper-case fingerprint", "aabbccddeeff\"", "AABBCCDDEEFF\""),
    ("odd alignment", "alignment_bytes: 256", "alignment_bytes: 24"),
    ("zero alignment", "alignment_bytes: 256", "alignment_bytes: 0"),
    ("negative budget", "budget_bytes: 8e9", "budget_bytes: -1"),
    ("no arena", "arena_bytes: 4096\nhost_", "host_"),
    ("time limit as a number", "time_limited: true", "time_limited: 1"),
    ("negative gap", "gap: 0.25", "gap: -0.25"),
    ("no stall", "stall_us: 0.5,", ""),
    ("unknown prediction", "stall_us: 0.5", "stall_us: 0.5, speed: 1"),
    ("half a byte", "peak_bytes: 4096", "peak_bytes: 0.5"),
    ("no decision", ", decision: swap", ""),
    ("unknown decision", "decision: swap", "decision: drop"),
    ("unknown phase", "phase: backward", "phase: reverse"),
    ("step without phase", ", phase: backward", ""),
    ("unknown rerun", "rerun: never", "rerun: no"),
    ("unknown operation", "[free, y 1]", "[drop, y 1]"),
    ("operation alone", "[free, y 1]", "[free]"),
    ("empty instruction", "[free, y 1]", "[]"),
    ("instruction as a map", "[free, y 1]", "{free: y 1}"),
    ("offset missing", "[alloc, x, 0]", "[alloc, x]"),
    ("offset too many", "[free, y 1]", "[free, y 1, 0]"),
    ("negative offset", "[alloc, x, 0]", "[alloc, x, -1]"),
    ("offset as text", "[alloc, x, 0]", "[alloc, x, zero]"),
    ("run without phase", "[run, f, backward]", "[run, f]"),
    ("no certificate", "time_limited: true", "certificate: ''"),
    ("certificate as a list", "time_limited: true", "certificate: [rows]"),
    ("certificate with an empty line", "time_limited: true", 'certificate: "a\\n\\nb"'),
    ("certificate with a tab", "time_limited: true", 'certificate: "a\\tb"'),
    ("certificate in another script", "time_limited: true", "certificate: \u5c42"),
    ("run in no phase", "[run, f, backward]", "[run, f, reverse]"),
]
GOOD_PLAN = [
    ("as it is", "", ""),
    ("no time limit", "time_limited: true\n", ""),
    ("a certificate", "time_limited: true\n", "time_limited: true\ncertificate: |\n  rows 1 0\n  more ~\n"),
    ("rerun allowed", "rerun: never", "rerun: allowed"),
    ("empty program", re.compile(r"program:.*", re.S), "program: []\n"),
]


def edit(text, old, new):
    if isinstance(old, re.Pattern):
        return old.sub(lambda _: new, text, count=1)
    assert old in text, old
    return text.replace(old, new, 1)


def main():
    read_file, corpus, schemas, profiles = sys.argv[1], *map(pathlib.Path, sys.argv[2:])
    complaints = checked = 0

    def verdicts(kind, text, path):
        schema = json.loads((schemas / f"{kind}.v1.schema.json").read_text(encoding="utf-8"))
        by_schema = jsonschema.Draft7Validator(schema).is_valid(yaml.load(text, Loader))
        run = subprocess.run([read_file, kind, path], capture_output=True, text=True, check=False)
        assert run.returncode in (0, 3), run
        return by_schema, run.returncode == 0, run.stdout.strip()

    def expect(kind, what, text, wanted, path):
        nonlocal complaints, checked
        by_schema, by_reader, message = verdicts(kind, text, path)
        checked += 1
        if by_schema != wanted or by_reader != wanted:
            complaints += 1
            print(f"{kind}, {what}: expected {wanted}, the schema says {by_schema}, the reader {by_reader} {message}")

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "document.yaml"
        for kind, good, bad in (("profile", GOOD_PROFILE, BAD_PROFILE), ("plan", GOOD_PLAN, BAD_PLAN)):
            base = (corpus / kind / "small.yaml").read_text(encoding="utf-8")
            for wanted, cases in ((True, good), (False, bad)):
                for what, old, new in cases:
                    text = edit(base, old, new)
                    path.write_text(text, encoding="utf-8")
                    expect(kind, what, text, wanted, path)
        page = (schemas / "README.md").read_text(encoding="utf-8")
        for text, kind in re.findall(r"^```yaml\n(atp_(profile|plan): .*?)^```", page, re.S | re.M):
            path.write_text(text, encoding="utf-8")
            expect(kind, "the example of README.md", text, True, path)
    for path in sorted(profiles.glob("*.yaml")):
        expect("profile", path.name, path.read_text(encoding="utf-8"), True, path)
    print(f"{checked} documents, {complaints} disagreements")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
