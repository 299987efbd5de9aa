#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A manual page from its template and the JSON Schema of the format, so that both have the same keys.

    manual.py SCHEMA TEMPLATE PAGE SCHEMAS

The line `.\\" KEYS` of the template becomes one list for each map of the schema, outermost first: the keys, what they
take, and their descriptions. `@schema@` becomes the schema's place below SCHEMAS.
"""

import json
import pathlib
import sys


def resolve(schema, node):
    """A node with what its reference says; its own words come first."""
    while "$ref" in node:
        target = schema["definitions"][node["$ref"].rsplit("/", 1)[1]]
        node = {**target, **{key: value for key, value in node.items() if key != "$ref"}}
    return node


def number(value):
    """Powers as people write them."""
    for power in (62, 31):
        if value == 1 << power:
            return f"2^{power}"
    digits = len(str(value)) - 1
    return f"{str(value).rstrip('0')}e{len(str(value)) - len(str(value).rstrip('0'))}" if digits > 6 else str(value)


def innermost(schema, node):
    """What a series has entries of, a list its items."""
    for key in ("anyOf", "items"):
        if key in node:
            inner = node[key][0] if key == "anyOf" else node[key]
            return innermost(schema, resolve(schema, inner))
    return node


def kind(schema, node):
    """What a key takes, in words."""
    if "const" in node:
        return str(node["const"])
    if "enum" in node and all(isinstance(value, str) for value in node["enum"]):
        *most, last = node["enum"]
        return f"{', '.join(most)} or {last}"
    words = node.get("title")
    if words is None and node["type"] == "array":
        items = resolve(schema, node["items"])
        words = "list of " + ("maps" if "properties" in items else f"{items['title']}s")
        if "maxItems" in node:
            words = words.replace("list of", f"list of {node['minItems']} to {node['maxItems']}")
    if words is None:
        words = {"object": "map", "string": "text", "boolean": "true or false", "integer": "whole number"}[node["type"]]
    inner = innermost(schema, node)
    if "properties" not in inner and "minimum" in inner:
        words += f", {number(inner['minimum'])} to {number(inner['maximum'])}"
    return words


def escape(text):
    """Text for the input of mdoc, one sentence a line."""
    text = text.replace("\\", "\\e").replace("2^", "2\\(ha")
    return text.replace(". ", ".\n")


def maps(schema, node, path):
    """(path, map) of a map and of all within it."""
    yield path, node
    for key, value in node["properties"].items():
        value = resolve(schema, value)
        inner = resolve(schema, value["items"]) if value.get("type") == "array" else value
        if "properties" in inner:
            yield from maps(schema, inner, path + [key + ("[]" if inner is not value else "")])


def lists(schema):
    lines = []
    for path, node in maps(schema, schema, []):
        required = node.get("required", [])
        if not path:
            lines.append(".Ss Keys of the file")
        elif path[-1].endswith("[]"):
            lines.append(f".Ss Keys of each entry of {'.'.join(path)[:-2]}")
        else:
            lines.append(f".Ss Keys of {'.'.join(path)}")
        lines.append(".Bl -tag -width Ds")
        for key, value in node["properties"].items():
            value = resolve(schema, value)
            either = any(key in choice["required"] for choice in node.get("oneOf", []))
            more = "" if key in required or either else "; optional"
            lines += [f".It Va {key} Pq {escape(kind(schema, value))}{more}", escape(value["description"])]
        lines.append(".El")
    return "\n".join(lines)


def main():
    schema, template = (pathlib.Path(path).read_text(encoding="utf-8") for path in sys.argv[1:3])
    mark = '.\\" KEYS\n'
    assert template.count(mark) == 1, f"{sys.argv[2]}: expected one line {mark}"
    page = template.replace(mark, lists(json.loads(schema)) + "\n")
    page = page.replace("@schema@", f"{sys.argv[4]}/{pathlib.Path(sys.argv[1]).name}")
    pathlib.Path(sys.argv[3]).write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
