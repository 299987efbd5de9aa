#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What examples/ci/ hands to continuous integration: the script finds what is wrong, GitHub's matcher takes each line of
it apart, GitLab's report says the same, and both pipelines name files that exist.

    test_ci.py EXAMPLES/CI ATP-PLAN PROFILES
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

passed = failed = 0


def holds(name, condition, detail=""):
    global passed, failed
    passed += bool(condition)
    failed += not condition
    print(f"{'ok     ' if condition else 'FAILED '} {name}", "" if condition else detail)


def main():
    folder, planner, profiles = (pathlib.Path(path).absolute() for path in sys.argv[1:4])
    pattern = json.loads((folder / "atp-plan-matcher.json").read_text(encoding="utf-8"))["problemMatcher"][0]["pattern"][0]
    text = (profiles / "tiny.yaml").read_text(encoding="utf-8")

    with tempfile.TemporaryDirectory() as scratch:
        plans = pathlib.Path(scratch) / "plans"
        plans.mkdir()

        def check(gap, report="report.json"):
            done = subprocess.run(["sh", folder / "check-plans.sh", planner, "plans", gap, report], cwd=scratch,
                                  capture_output=True, text=True, check=False)
            path = pathlib.Path(scratch) / report
            found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
            return done.returncode, done.stderr.splitlines(), found

        def taken_apart(line):
            match = re.fullmatch(pattern["regexp"], line)
            return match and [match[pattern[key]] for key in ("file", "line", "column", "severity", "message")]

        def line_of(path, start):
            lines = (plans / path).read_text(encoding="utf-8").splitlines()
            return next(i + 1 for i, line in enumerate(lines) if line.startswith(start))

        holds("no plan at all is no success", check("1%")[0] == 2)
        (plans / "tiny.profile.yaml").write_text(text, encoding="utf-8")
        plan = plans / "tiny.plan.yaml"
        subprocess.run([planner, plans / "tiny.profile.yaml", "--budget", "75%", "-q", "-o", plan], check=True)
        holds("a good plan passes", check("10%") == (0, [], []), check("10%"))

        code, lines, report = check("1%")
        parts = taken_apart(lines[0]) if len(lines) == 1 else None
        wanted = ["plans/tiny.plan.yaml", str(line_of("tiny.plan.yaml", "  gap:")), "1", "error"]
        holds("a gap that is too large fails", code == 1 and parts is not None, lines)
        holds("at the line of the gap", parts and parts[:4] == wanted, parts)
        holds("with words", parts and parts[4].startswith("predicted.gap: "), parts)
        holds("the report has it too", len(report) == 1 and report[0]["location"] ==
              {"path": wanted[0], "lines": {"begin": int(wanted[1])}} and report[0]["severity"] == "critical" and
              report[0]["description"] == "error: " + parts[4], report)

        good = plan.read_text(encoding="utf-8")
        plan.write_text(good.replace("  - [evicted, x]\n", ""), encoding="utf-8")
        code, lines, report = check("10%")
        holds("a missing wait fails", code == 1 and lines, lines)
        holds("and every line is taken apart", all(taken_apart(line) for line in lines) and len(report) == len(lines), lines)
        plan.write_text(good, encoding="utf-8")

        (plans / "tiny.profile.yaml").write_text(text.replace("reads: [b]", 'reads: ["b\\\\"]'), encoding="utf-8")
        code, lines, report = check("10%")
        parts = taken_apart(lines[0])
        holds("a broken profile fails", code == 1 and len(lines) == 1 and "no tensor is named" in lines[0], lines)
        holds("with no word for how bad, which GitHub takes for an error", parts[3] is None, parts)
        holds("and text in quotes comes through", report[0]["description"] == parts[4], report)

    root = folder.parent.parent
    for name in ("github.yml", "gitlab.yml"):
        paths = re.findall(r"\batp/((?:\.ci|examples)/[\w./-]+)", (folder / name).read_text(encoding="utf-8"))
        missing = [path for path in paths if not (root / path).exists()]
        holds(f"{name} names files that exist", len(paths) >= 3 and not missing, missing or paths)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
