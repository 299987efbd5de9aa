# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes text files as C strings: embed.py OUT.c HEADER.h NAME=FILE..."""
import sys

out_path, header, *files = sys.argv[1:]
lines = [f'#include "{header}"']
for name, path in (argument.split("=", 1) for argument in files):
    with open(path, "rb") as file:
        data = file.read() + b"\0"
    lines.append(f"\nconst char {name}[] = {{")
    # Numbers, not a string: C11 promises only 4095 characters of one. char may be signed.
    for at in range(0, len(data), 20):
        lines.append("    " + ", ".join(str(b - 256 if b > 127 else b) for b in data[at : at + 20]) + ",")
    lines.append("};")
with open(out_path, "w", encoding="ascii") as file:
    file.write("\n".join(lines) + "\n")
