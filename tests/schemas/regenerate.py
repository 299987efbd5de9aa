#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every modelled profile is, byte for byte, what profiles/generate.py writes with the options in its `origin`; one with
several batch sizes is what `atp-plan merge` makes of one profile for each.

    regenerate.py PROFILES READ_FILE ATP_PLAN
"""

import pathlib
import re
import subprocess
import sys
import tempfile


def merged(atp_plan, paths):
    """The merged profile but for its origin, in which the two ways differ."""
    done = subprocess.run([atp_plan, "merge", "-q", *paths], stdout=subprocess.PIPE, check=True)
    return [line for line in done.stdout.splitlines() if not line.startswith(b"origin: ")]


def merges_to_itself(folder, options, atp_plan):
    """Of all batch sizes but the last in one profile and the last in another, and of each in a profile of its own."""
    at = options.index("--batch") + 1
    sizes = options[at].split(",")
    with tempfile.TemporaryDirectory() as scratch:
        def write(batch):
            path = pathlib.Path(scratch) / f"{batch}.yaml"
            words = [*options[:at], batch, *options[at + 1:]]
            path.write_bytes(subprocess.run([sys.executable, folder / "generate.py", *words], stdout=subprocess.PIPE,
                                            check=True).stdout)
            return path
        singles = [write(size) for size in sizes]
        return merged(atp_plan, [write(",".join(sizes[:-1])), singles[-1]]) == merged(atp_plan, singles[::-1])


def main():
    folder, read_file, atp_plan = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    checked, complaints = 0, []
    for path in sorted(folder.glob("*-modelled.yaml")):
        text = path.read_bytes()
        options = re.search(rb'^origin: ".*profiles/generate\.py ([^"]*)"$', text, re.M)
        if not options:
            complaints.append(f"{path.name}: `origin` names no options")
            continue
        words = options.group(1).decode().split()
        command = [sys.executable, folder / "generate.py", *words]
        again = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
        checked += 1
        if again != text:
            complaints.append(f"{path.name}: generate.py writes other bytes")
        if subprocess.run([read_file, "profile", path], check=False).returncode != 0:
            complaints.append(f"{path.name}: the reader refuses it")
        if b"\nbatch_sizes: " in text and not merges_to_itself(folder, words, atp_plan):
            complaints.append(f"{path.name}: merging its batch sizes gives another profile")
    print(*complaints, f"{checked} profiles are as generated, {len(complaints)} complaints", sep="\n")
    return 1 if complaints or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
