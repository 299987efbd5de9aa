#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sums up what `meson test` found in some build directories.

One line per test: the closing line of the library Check where the test has one, else meson's word. The last line is
"N passed, N failed". Exit status 1 when a test failed, or when there was none.
"""
import json
import pathlib
import re
import sys

CLOSING = re.compile(r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)$", re.MULTILINE)
PASSED = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP", "IGNORED"}


def read_results(build):
    path = pathlib.Path(build) / "meson-logs" / "testlog.json"
    if not path.exists():
        return []
    with path.open(encoding="utf-8", errors="replace") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def main(builds):
    passed = failed = skipped = suites = 0
    checks = [0, 0, 0]
    for build in builds:
        results = read_results(build)
        print(f"{build}: {len(results)} tests")
        for result in sorted(results, key=lambda one: one["name"]):
            word = result["result"]
            closing = CLOSING.findall(result.get("stdout") or "")
            for counts in closing:
                suites += 1
                checks = [sum(pair) for pair in zip(checks, map(int, counts))]
            name = result["name"].removeprefix("atp:")
            text = "; ".join(m.group(0) for m in CLOSING.finditer(result.get("stdout") or ""))
            if word in SKIPPED:
                skipped += 1
            elif word in PASSED:
                passed += 1
            else:
                failed += 1
                text = f"{word} {text}"
            print(f"  {name:<36} {text or word}")
    print(f"Check: {checks[0]} checks in {suites} suites, {checks[1]} failures, {checks[2]} errors")
    if skipped:
        print(f"{skipped} skipped: what they need is not on this machine")
    if passed + failed == 0:
        print("no test was run", file=sys.stderr)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
