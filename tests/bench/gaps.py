#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""How near to the best plans are, and what finding them takes.

    tests/bench/gaps.py BUILD PROFILE...

plans every profile (files, or directories of *.yaml) at several shares of its activations' peak and at the least budget
that it can have, has every plan checked, and prints one line for each: steps; rows and columns given to GLPK; seconds;
overhead over the step times; the bound's overhead; the gap; arena over the largest sum of live bytes. With --generate
it also makes profiles of deep nets and of long chains. Fails when a plan is refused or cannot be found.
"""
import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

GENERATOR = pathlib.Path(__file__).resolve().parents[2] / "profiles" / "generate.py"
NETS = ["gpt2-xl", "resnet152", "unet"]
STEPS_PER_LAYER = 2  # of a generated chain
CHAIN_STEPS = [500, 1000, 2000, 5000, 10000, 20000]
COLUMNS = ["profile", "budget", "budget_bytes", "steps", "tensors", "rows", "columns", "seconds", "overhead", "bound",
           "gap", "arena_over_peak", "verdict"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="build directory")
    parser.add_argument("profiles", nargs="*", type=pathlib.Path, metavar="PROFILE", help="profile, or directory of them")
    parser.add_argument("--generate", action="store_true", help="also deep nets and chains made by profiles/generate.py")
    parser.add_argument("--chains", default=",".join(map(str, CHAIN_STEPS)), help="steps of the chains, about")
    parser.add_argument("--shares", default="80,60,40,25,15", help="percent of the peak (default: %(default)s)")
    parser.add_argument("--effort", type=int, default=1)
    parser.add_argument("--timeout", type=int, default=600, help="seconds for one plan (default: %(default)s)")
    parser.add_argument("--csv", action="store_true", help="comma-separated values on standard output")
    return parser.parse_args()


def nets_to_generate(options):
    """Names, and what the generator is told."""
    for net in NETS:
        yield net, [net]
    for steps in options.chains.split(",") if options.chains else []:
        yield f"chain-{steps}", ["chain", "--layers", str(int(steps) // STEPS_PER_LAYER)]


def profiles(options, scratch):
    for path in options.profiles:
        yield from sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    for name, words in nets_to_generate(options) if options.generate else []:
        path = scratch / f"{name}.yaml"
        with path.open("w") as out:
            subprocess.run([sys.executable, GENERATOR, *words], stdout=out, check=True)
        yield path


def plan(options, scratch, profile, budget):
    """The numbers of a plan with its verdict, or a verdict alone."""
    planner = options.build / "planner" / "atp-plan"
    report, out = scratch / "report.json", scratch / "plan.yaml"
    command = [planner, profile, "--budget", budget, "--effort", str(options.effort), "-q", "-o", out, "--report", report]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout, check=False)
    except subprocess.TimeoutExpired:
        return {"verdict": f"no plan in {options.timeout} s"}
    if done.returncode != 0:
        return {"verdict": done.stderr.strip().split("\n")[-1]}
    numbers = json.loads(report.read_text())
    judged = subprocess.run([planner, "check", out, "--profile", profile, "-q"], capture_output=True, text=True, check=False)
    numbers["verdict"] = "accepted" if judged.returncode == 0 else judged.stdout.strip().split("\n")[-1]
    return numbers


def share(part, whole):
    return part / whole if whole else 0.0


def row(profile, budget, numbers):
    line = {"profile": profile.stem, "budget": budget, "verdict": numbers["verdict"]}
    if "iteration_ns" in numbers:
        compute, bound, iteration = numbers["compute_ns"], numbers["bound_ns"], numbers["iteration_ns"]
        line |= {key: numbers[key] for key in ("budget_bytes", "steps", "tensors", "rows", "columns")}
        line |= {"seconds": round(numbers["spent_ms"] / 1000, 2),
                 "overhead": round(share(iteration - compute, compute), 6),
                 "bound": round(share(bound - compute, compute), 6),
                 "gap": round(share(iteration - bound, bound), 6),
                 "arena_over_peak": round(share(numbers["arena_bytes"], numbers["peak_bytes"]) or 1.0, 4)}
    return line


def budgets(options, numbers):
    """What to plan for, given the numbers of a plan with everything kept: labels and sizes."""
    activations = numbers["keep_all_bytes"] - numbers["resident_bytes"]
    least = numbers["least_budget_bytes"]
    for percent in options.shares.split(","):
        if numbers["resident_bytes"] + activations * float(percent) / 100 >= least:
            yield f"{percent}%", f"{percent}%"
    yield "least", str(least)


def text_line(line):
    if "gap" not in line:
        return f"{line['profile']:<32} {line['budget']:>6}  {line['verdict']}"
    return (f"{line['profile']:<32} {line['budget']:>6} {line['steps']:>6} {line['rows']:>7} {line['columns']:>7} "
            f"{line['seconds']:>8.2f} {line['overhead']:>9.2%} {line['bound']:>9.2%} {line['gap']:>8.3%} "
            f"{line['arena_over_peak']:>7.4f}  {line['verdict']}")


def summary(lines):
    planned = [line for line in lines if "gap" in line]
    for name, some in (("above the least budget", [x for x in planned if x["budget"] != "least"]),
                       ("at the least budget", [x for x in planned if x["budget"] == "least"])):
        if some:
            gaps = [x["gap"] for x in some]
            print(f"{name}: {len(some)} plans, gap {statistics.median(gaps):.3%} in the median, {max(gaps):.3%} at worst; "
                  f"at most {max(x['seconds'] for x in some):.1f} s, arena {max(x['arena_over_peak'] for x in some):.4f} "
                  "of the peak")


def main():
    options = arguments()
    lines, refused = [], 0
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    if options.csv:
        writer.writeheader()
    else:
        print(f"{'profile':<32} {'budget':>6} {'steps':>6} {'rows':>7} {'columns':>7} {'seconds':>8} {'overhead':>9} "
              f"{'bound':>9} {'gap':>8} {'arena':>7}  check")
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        for profile in profiles(options, scratch):
            kept = plan(options, scratch, profile, "100%")
            todo = budgets(options, kept) if "keep_all_bytes" in kept else [("100%", "100%")]
            for label, budget in todo:
                line = row(profile, label, plan(options, scratch, profile, budget))
                lines.append(line)
                refused += line["verdict"] != "accepted"
                if options.csv:
                    writer.writerow(line)
                else:
                    print(text_line(line))
                sys.stdout.flush()
    if not options.csv:
        summary(lines)
    if not lines:
        print("gaps.py: no profiles", file=sys.stderr)
    return 1 if refused or not lines else 0


if __name__ == "__main__":
    sys.exit(main())
