#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the best batch size is worth: its throughput beside that of the largest batch size without a plan and of each
simple policy at its own best batch size, how far beyond the budget memory goes, and what is proven.

    tests/bench/peak.py BUILD [PROFILE=BUDGET...]

Without profiles it makes some with profiles/generate.py, at budgets that limit the batch. One table, one line each;
with --curve also the whole output of `atp-plan peak`. Fails when an order model >= bound >= plan is broken.
"""
import argparse
import csv
import io
import pathlib
import subprocess
import sys
import tempfile
import time

GENERATOR = pathlib.Path(__file__).resolve().parents[2] / "profiles" / "generate.py"
# name: generator's arguments, budget, options of peak
GENERATED = {
    "gpt2-xl_h200": ("gpt2-xl --batch 1,2,4,8 --gpu h200", "40e9", "--points 3 --plans 5"),
    "resnet152_h200": ("resnet152 --batch 1,2,4,8,16,32 --gpu h200", "2e9", "--points 3 --plans 5"),
}
LINE = "{:<32} {:>8} {:>6} {:>10} {:>10} {:>9} {:>17} {:>8} {:>8} {:>8} {:>9} {:>7} {:>8}"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="build directory")
    parser.add_argument("profiles", nargs="*", metavar="PROFILE=BUDGET")
    parser.add_argument("--curve", action="store_true", help="print what atp-plan prints, too")
    parser.add_argument("--options", default="", help="for atp-plan peak, for all profiles")
    return parser.parse_args()


def cases(options, scratch):
    """Name, path, budget, options."""
    for case in options.profiles:
        path, _, budget = case.rpartition("=")
        yield pathlib.Path(path).stem, pathlib.Path(path), budget, options.options
    for name, (words, budget, extra) in GENERATED.items() if not options.profiles else []:
        path = scratch / f"{name}.yaml"
        with path.open("w") as out:
            subprocess.run([sys.executable, GENERATOR, *words.split()], stdout=out, check=True)
        yield name, path, budget, f"{extra} {options.options}"


def find_peak(options, path, budget, extra):
    command = [options.build / "planner" / "atp-plan", "peak", path, "--budget", budget, "-q", *extra.split()]
    if options.curve:
        subprocess.run(command, check=True)
    begin = time.monotonic()
    done = subprocess.run([*command, "--csv"], capture_output=True, text=True, check=True)
    return list(csv.DictReader(io.StringIO(done.stdout))), time.monotonic() - begin


def has_role(row, role):
    return role in row["role"].split("+")


def proven_gap(plans, peak):
    """How much faster another batch size could be by its bound."""
    rival = next((float(r["bound_per_s"] or 0) for r in plans if has_role(r, "rival")), 0.0)
    return max(0.0, rival / float(peak["per_s"]) - 1)


def describe(name, budget, rows, seconds):
    plans = [r for r in rows if r["policy"] == "plan"]
    policies = [r for r in rows if r["policy"] != "plan"]
    peak = next(r for r in plans if has_role(r, "peak"))
    unplanned = next((r for r in plans if has_role(r, "largest-unplanned")), None)
    largest = next((r for r in plans if has_role(r, "largest-planned") and r["per_s"]), None)
    best = max(policies, key=lambda r: float(r["per_s"]))
    rate = float(peak["per_s"])
    return LINE.format(
        name, budget, peak["batch_size"], f"{rate:.2f}",
        # Everything fits there, so that the model is the steps alone.
        f"{rate / float(unplanned['model_per_s']):.3f}x" if unplanned else "-",
        unplanned["batch_size"] if unplanned else "-",
        f"{best['policy']}@{best['batch_size']}"[:17], f"{rate / float(best['per_s']):.3f}x",
        f"{float(peak['memory_ratio']):.2f}x", f"{float(largest['memory_ratio']):.2f}x" if largest else "-",
        f"{float(largest['per_s']):.2f}" if largest else "-", f"{proven_gap(plans, peak):.2%}", f"{seconds:.1f}")


def describe_policies(rows):
    """What the peak gains over each policy at its own best batch size; those that fit at none are left out."""
    rate = next(float(r["per_s"]) for r in rows if r["policy"] == "plan" and has_role(r, "peak"))
    return "    over " + ", ".join(f"{r['policy']}@{r['batch_size']} {rate / float(r['per_s']):.3f}x"
                                   for r in rows if r["policy"] != "plan")


def main():
    options = arguments()
    broken = 0
    print(LINE.format("profile", "budget", "peak", "samples/s", "speed-up", "unplanned", "best policy", "speed-up",
                      "memory", "at most", "samples/s", "gap", "seconds"))
    with tempfile.TemporaryDirectory() as scratch:
        for name, path, budget, extra in cases(options, pathlib.Path(scratch)):
            rows, seconds = find_peak(options, path, budget, extra)
            print(describe(name, budget, rows, seconds), flush=True)
            print(describe_policies(rows), flush=True)
            for row in rows:
                if row["policy"] == "plan" and row["per_s"]:
                    ordered = float(row["model_per_s"]) >= float(row["bound_per_s"]) >= float(row["per_s"])
                    broken += not ordered
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
