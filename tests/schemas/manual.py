#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manual pages of the formats, and the normative page, have exactly the keys and instructions of the schemas; the
pages' examples are good; groff and mandoc, where they are, find nothing in them.

    manual.py READ_FILE SCHEMAS PAGE...
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def follow(schema, node):
    return schema["definitions"][node["$ref"].rsplit("/", 1)[1]] if "$ref" in node else node


def keys_of_schema(schema, node, prefix=""):
    """`device.name`, `tensors[].bytes`."""
    for key, value in node["properties"].items():
        yield prefix + key
        value = follow(schema, value)
        inner = follow(schema, value["items"]) if "items" in value else value
        if "properties" in inner:
            yield from keys_of_schema(schema, inner, f"{prefix}{key}{'[]' if 'items' in value else ''}.")


def keys_of_page(text):
    prefix = None
    for line in text.splitlines():
        if line.startswith(".Ss Keys of each entry of "):
            prefix = line.split()[-1] + "[]."
        elif line == ".Ss Keys of the file":
            prefix = ""
        elif line.startswith(".Ss Keys of "):
            prefix = line.split()[-1] + "."
        elif line.startswith(".S"):
            prefix = None
        elif line.startswith(".It Va ") and prefix is not None:
            yield prefix + line.split()[2]


def keys_of_readme(text, kind):
    """From the table of one format: what is quoted in its first two columns, where that is a key."""
    part = text.split(f"\n## {kind.capitalize()}, version 1\n", 1)[1].split("\n## ", 1)[0]
    table = part.split("\n| key | type |", 1)[1].split("\n\n", 1)[0]
    for row in table.splitlines()[2:]:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        names = re.findall(r"`([^`]*)`", cells[0])
        # A second name in a cell is in the map of the first.
        names = [name if "." in name or i == 0 else names[0].rsplit(".", 1)[0] + "." + name
                 for i, name in enumerate(names)]
        for name in names:
            yield from [name] if not name.endswith("[]") else [name[:-2]]
            if name.endswith("[]"):
                yield from [f"{name}.{key}" for key in re.findall(r"`([a-z_]+)`", cells[1])]
            elif "[]." in name:
                yield name.split("[].")[0]
            elif "." in name:
                yield name.split(".")[0]


def operations(schema):
    for choice in schema["definitions"].get("instruction", {}).get("anyOf", []):
        first = choice["items"][0]
        yield from first.get("enum", [first.get("const")])


def main():
    read_file, schemas, pages = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    readme = (schemas / "README.md").read_text(encoding="utf-8")
    complaints = checked = 0

    def expect(what, wanted, got):
        nonlocal complaints, checked
        checked += 1
        for name in sorted(wanted ^ got):
            complaints += 1
            print(f"{what}: {name}: {'is missing' if name in wanted else 'is not in the schema'}")

    for path in pages:
        text = pathlib.Path(path).read_text(encoding="utf-8")
        kind = pathlib.Path(path).stem.split("-")[1]
        schema = json.loads((schemas / f"{kind}.v1.schema.json").read_text(encoding="utf-8"))
        wanted = set(keys_of_schema(schema, schema))
        expect(path, wanted, set(keys_of_page(text)))
        expect(f"README.md, {kind}", wanted, set(keys_of_readme(readme, kind)))
        expect(f"{path}, instructions", set(operations(schema)),
               set(re.findall(r"^\.It Bq Cm ([a-z]+) ", text, re.M)))
        example = text.split(".Sh EXAMPLES\n.Bd -literal\n", 1)[1].split(".Ed\n", 1)[0]
        with tempfile.TemporaryDirectory() as folder:
            document = pathlib.Path(folder) / "example.yaml"
            document.write_text(example, encoding="utf-8")
            run = subprocess.run([read_file, kind, document], capture_output=True, text=True, check=False)
        checked += 1
        if run.returncode != 0:
            complaints += 1
            print(f"{path}: its example: {run.stdout}")
        for command in (["groff", "-mdoc", "-Tutf8", "-ww", "-z", path], ["mandoc", "-Tlint", "-Wwarning", path]):
            if shutil.which(command[0]):
                run = subprocess.run(command, capture_output=True, text=True, check=False)
                checked += 1
                if run.stdout or run.stderr:
                    complaints += 1
                    print(run.stdout + run.stderr)
    print(f"{len(pages)} pages, {checked} checks, {complaints} complaints")
    return 1 if complaints or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
