#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every modelled profile is, byte for byte, what profiles/generate.py writes with the options in its `origin`.

    regenerate.py PROFILES READ_FILE
"""

import pathlib
import re
import subprocess
import sys


def main():
    folder, read_file = pathlib.Path(sys.argv[1]), sys.argv[2]
    checked, complaints = 0, []
    for path in sorted(folder.glob("*-modelled.yaml")):
        text = path.read_bytes()
        options = re.search(rb'^origin: ".*profiles/generate\.py ([^"]*)"$', text, re.M)
        if not options:
            complaints.append(f"{path.name}: `origin` names no options")
            continue
        command = [sys.executable, folder / "generate.py", *options.group(1).decode().split()]
        again = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
        checked += 1
        if again != text:
            complaints.append(f"{path.name}: generate.py writes other bytes")
        if subprocess.run([read_file, "profile", path], check=False).returncode != 0:
            complaints.append(f"{path.name}: the reader refuses it")
    print(*complaints, f"{checked} profiles are as generated, {len(complaints)} complaints", sep="\n")
    return 1 if complaints or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
