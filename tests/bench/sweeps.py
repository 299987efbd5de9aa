#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a sweep takes and finds, beside planning for each of its budgets alone.

    tests/bench/sweeps.py BUILD PROFILE... [--points N]

prints one line for each budget: overhead over the step times of the sweep's plan, and of the plan that `atp-plan solve`
finds for the budget; then seconds of processor time of the sweep and of all solves together. Fails when a larger budget
has a slower plan in the sweep.
"""
import argparse
import csv
import json
import pathlib
import sys
import tempfile

import scaling


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="build directory")
    parser.add_argument("profiles", nargs="+", type=pathlib.Path, metavar="PROFILE")
    parser.add_argument("--points", type=int, default=6, help="budgets (default: %(default)s)")
    parser.add_argument("--timeout", type=int, default=1200, help="seconds for one run (default: %(default)s)")
    return parser.parse_args()


def run(command, timeout, out):
    with out.open("w") as stream:
        used = scaling.run(command, timeout, stream)
    if used["code"] != 0:
        sys.exit(f"sweeps.py: {' '.join(map(str, command))}: {used['words'].strip() or 'the time was up'}")
    return used["seconds"]


def compare(planner, profile, scratch, options):
    """The budgets of one profile. False when the sweep's plans get slower."""
    table, report = scratch / "sweep.csv", scratch / "report.json"
    swept = run([planner, "sweep", profile, "--points", str(options.points), "--csv", "-q"], options.timeout, table)
    with table.open() as stream:
        points = list(csv.DictReader(stream))
    alone, times = 0.0, []
    print(f"{profile.stem}\n{'budget':>14} {'share':>7} {'sweep':>9} {'solve':>9}")
    for point in reversed(points):
        alone += run([planner, profile, "--budget", point["budget_bytes"], "-q", "--report", report], options.timeout,
                     scratch / "plan.yaml")
        numbers = json.loads(report.read_text())
        overhead = numbers["iteration_ns"] / numbers["compute_ns"] - 1
        times.append(int(point["iteration_ns"]))
        print(f"{point['budget_bytes']:>14} {float(point['share']):>7.1%} {float(point['overhead']):>9.2%} {overhead:>9.2%}",
              flush=True)
    print(f"seconds: the sweep {swept:.1f}, the solves {alone:.1f}\n", flush=True)
    return times == sorted(times, reverse=True)


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as name:
        good = [compare(options.build / "planner" / "atp-plan", profile, pathlib.Path(name), options)
                for profile in options.profiles]
    if not all(good):
        print("sweeps.py: a larger budget has a slower plan", file=sys.stderr)
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
