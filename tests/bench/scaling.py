#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""How planning grows with the number of steps.

    tests/bench/scaling.py BUILD [--families LIST] [--steps LIST] [--shares LIST]

makes profiles of three families at several lengths with profiles/generate.py, plans each, and prints one line for each:
steps; rows and columns given to GLPK; simplex iterations; operations scheduled by the search; seconds of processor time
(a shared machine does not disturb those); the exponent of growth since the length before (1 is linear); the planner's
peak memory; overhead; gap.

    wide     equal dense layers whose activations are copied while they compute: a plan costs nothing
    narrow   the same with too little arithmetic for that: the plan pays, the search has work
    gpt      GPT-2 small with as many blocks as it takes
"""
import argparse
import importlib.util
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

GENERATOR = pathlib.Path(__file__).resolve().parents[2] / "profiles" / "generate.py"
STEPS_PER_LAYER = 2  # of a chain
STEPS_PER_BLOCK = 26  # of a GPT
FAMILIES = {
    "wide": (STEPS_PER_LAYER, {"model": "chain", "width": 1024, "batch": [64]}),
    "narrow": (STEPS_PER_LAYER, {"model": "chain", "width": 128, "batch": [8192]}),
    "gpt": (STEPS_PER_BLOCK, {"model": "gpt", "batch": [8]}),
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="build directory")
    parser.add_argument("--families", default=",".join(FAMILIES), help="(default: %(default)s)")
    parser.add_argument("--steps", default="500,1000,2000,5000,10000,20000", help="about (default: %(default)s)")
    parser.add_argument("--shares", default="60,40", help="percent of the peak (default: %(default)s)")
    parser.add_argument("--timeout", type=int, default=600, help="seconds for one plan (default: %(default)s)")
    return parser.parse_args()


def load_generator():
    spec = importlib.util.spec_from_file_location("generate", GENERATOR)
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    return module


def write_profile(generator, family, steps, path):
    per_layer, words = FAMILIES[family]
    layers = max(steps // per_layer, 1)
    generator.GPT2["gpt"] = (layers, 768, 12)
    options = {"gpu": "v100", "length": 1024, "image": None, "layers": layers, "width": 1024} | words
    with path.open("w") as out:
        generator.write(argparse.Namespace(**options), out)


def run(command, timeout, out=subprocess.DEVNULL):
    """What it said on standard error, its exit status, seconds on the clock and of the processor, peak memory."""
    start = time.monotonic()
    with subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, text=True) as process:
        timer = threading.Timer(timeout, process.kill)
        timer.start()
        words = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
    return {"words": words, "code": process.returncode, "clock": time.monotonic() - start,
            "seconds": used.ru_utime + used.ru_stime, "memory": used.ru_maxrss * 1024}


def line(family, share, used, numbers, before):
    compute, bound, iteration = (numbers[key] for key in ("compute_ns", "bound_ns", "iteration_ns"))
    exponent = ""
    if before:
        exponent = f"{math.log(used['seconds'] / before[1]) / math.log(numbers['steps'] / before[0]):.2f}"
    return (f"{family:<8}{share:>4}% {numbers['steps']:>6} {numbers['rows']:>6} {numbers['columns']:>7} "
            f"{numbers['simplex_iterations']:>8} {numbers['operations_scheduled']:>11} {used['seconds']:>8.1f} "
            f"{exponent:>6} {used['memory'] / 2**20:>7.0f} {iteration / compute - 1:>9.2%} {iteration / bound - 1:>8.3%}")


def main():
    options = arguments()
    generator = load_generator()
    failed = 0
    print(f"{'family':<8}{'':>5} {'steps':>6} {'rows':>6} {'columns':>7} {'simplex':>8} {'operations':>11} {'seconds':>8} "
          f"{'growth':>6} {'MiB':>7} {'overhead':>9} {'gap':>8}")
    with tempfile.TemporaryDirectory() as name:
        profile, report = pathlib.Path(name) / "profile.yaml", pathlib.Path(name) / "report.json"
        for family in options.families.split(","):
            before = {}
            for steps in map(int, options.steps.split(",")):
                write_profile(generator, family, steps, profile)
                for share in options.shares.split(","):
                    used = run([options.build / "planner" / "atp-plan", profile, "--budget", f"{share}%", "-q",
                                "-o", pathlib.Path(name) / "plan.yaml", "--report", report], options.timeout)
                    if used["code"] != 0:
                        failed += 1
                        print(f"{family:<8}{share:>4}% {steps:>6}  no plan after {used['clock']:.0f} s: "
                              f"{used['words'].strip() or 'the time was up'}", flush=True)
                        continue
                    numbers = json.loads(report.read_text())
                    print(line(family, share, used, numbers, before.get(share)), flush=True)
                    before[share] = (numbers["steps"], used["seconds"])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
