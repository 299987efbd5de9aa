#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every schema in schemas/ is a JSON Schema, and every shipped profile and example plan is valid under its own.

A file says what it is by its first key, atp_profile or atp_plan.
"""
import json
import pathlib
import re
import sys

import jsonschema
import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Loader(yaml.SafeLoader):
    """YAML 1.1 reads 12e9 as text; ATP, YAML 1.2 and JSON read a number."""


def construct_scalar(loader, node):
    value = loader.construct_scalar(node)
    if node.style is None and re.fullmatch(r"[0-9]+([.][0-9]+)?[eE][+]?[0-9]{1,2}", value):
        number = float(value)
        return int(number) if number.is_integer() else number
    return value


Loader.add_constructor("tag:yaml.org,2002:str", construct_scalar)


def find_schemas():
    schemas = {}
    for path in sorted((ROOT / "schemas").glob("*.schema.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        jsonschema.validators.validator_for(schema).check_schema(schema)
        schemas[path.name.split(".")[0]] = schema
        print(f"schemas/{path.name}: is a schema")
    return schemas


def main():
    schemas = find_schemas()
    bad = 0
    files = 0
    for folder in ("profiles", "examples"):
        for path in sorted((ROOT / folder).rglob("*.yaml")):
            with path.open(encoding="utf-8") as text:
                data = yaml.load(text, Loader)
            name = path.relative_to(ROOT)
            files += 1
            keys = data if isinstance(data, dict) else {}
            kind = next((k for k in ("profile", "plan") if f"atp_{k}" in keys), None)
            if kind not in schemas:
                bad += 1
                print(f"{name}: no schemas/{kind or 'profile'}.*.schema.json says what this is")
                continue
            validator = jsonschema.validators.validator_for(schemas[kind])(schemas[kind])
            for error in validator.iter_errors(data):
                bad += 1
                place = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.absolute_path)
                print(f"{name}: {place.lstrip('.')}: {error.message[:200]}")
    print(f"{files} profiles and plans read, {bad} complaints")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
