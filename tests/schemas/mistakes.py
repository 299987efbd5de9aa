#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an editor shows for mistakes in a profile, and what atp-plan says about the same file.

    mistakes.py ATP-PLAN SCHEMA PROFILE

An editor with a YAML language server validates against the JSON Schema and underlines the value of each error; so does
this, with python3-jsonschema. Fails when one of the two accepts what it should refuse.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

import jsonschema
import yaml

# (what, old text, new text, does the schema see it): edits of profiles/tiny.yaml.
MISTAKES = [
    ("a key that does not exist", "{name: b, bytes: 8e6}", "{name: b, bytes: 8e6, decied: keep}", True),
    ("a word that is none of the choices", "name: gelu, phase: forward", "name: gelu, phase: foward", True),
    ("one name where a list is due", "reads: [x], writes: [a]", "reads: x, writes: [a]", True),
    ("a tensor that nobody declared", "reads: [b], writes: [c]", "reads: [bb], writes: [c]", False),
]


class Loader(yaml.SafeLoader):
    """YAML 1.1, but numbers as in YAML 1.2: 8e6 is one."""


Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"^[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"),
                             list("0123456789"))


def mark_of(node, path):
    """Where the value at a path begins."""
    for part in path:
        if isinstance(part, int):
            node = node.value[part]
        else:
            node = next(value for key, value in node.value if key.value == part)
    return f"{node.start_mark.line + 1}:{node.start_mark.column + 1}"


def shown_by_editor(schema, text):
    node = yaml.compose(text, Loader)
    for error in jsonschema.Draft7Validator(schema).iter_errors(yaml.load(text, Loader)):
        yield f"{mark_of(node, error.absolute_path)}: {error.message}"


def main():
    planner, schema, profile = (pathlib.Path(path) for path in sys.argv[1:4])
    planner = planner.absolute()
    schema = json.loads(schema.read_text(encoding="utf-8"))
    good = profile.read_text(encoding="utf-8")
    assert not list(shown_by_editor(schema, good)), "the profile is not good to begin with"
    bad = False
    with tempfile.TemporaryDirectory() as folder:
        for what, old, new, is_seen in MISTAKES:
            assert good.count(old) == 1, old
            text = good.replace(old, new)
            (pathlib.Path(folder) / profile.name).write_text(text, encoding="utf-8")
            shown = list(shown_by_editor(schema, text))
            run = subprocess.run([planner, profile.name, "--budget", "75%"], cwd=folder, capture_output=True, text=True,
                                 check=False)
            bad = bad or bool(shown) != is_seen or run.returncode != 3
            print(f"{what}: {new}")
            for line in shown or ["nothing"]:
                print(f"  editor    {line}")
            print(f"  atp-plan  {run.stderr.strip()}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
