#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Throughput against batch size under a fixed budget: a rising, a peaked and a falling curve.

    tests/e2e/peak_shapes.py ATP-PLAN [--print]

Each curve is that of a made-up network in the manner of one that was measured under a fixed budget on a Titan V and
published (ResNet-1202 at 6 GB: 64 to 140 samples; a Transformer at 8.8 GB: 30 to 90; U-Net at 6 GB: 7 to 10). The
memory of a sample and the plain step times are of that order. What is asserted is the shape of the curve over the same
batch sizes, that the search finds its top, and that model >= bound >= plan everywhere.
"""
import argparse
import csv
import io
import pathlib
import subprocess
import sys
import tempfile

LAYERS = 12
MB = 10**6
MS = 1000  # in us


class Net:
    """LAYERS blocks: a slow step whose output is kept for its own backward step, and a quick one."""

    def __init__(self, budget, resident, slow_mb, quick_mb, fixed_ms, slow_ms, quick_ms, link):
        self.budget, self.resident = budget, resident
        self.slow, self.quick = slow_mb * MB, quick_mb * MB  # bytes a sample, in a layer
        self.fixed, self.slow_us, self.quick_us = fixed_ms * MS, slow_ms * MS, quick_ms * MS
        self.link = link

    def write(self, path, sizes):
        steps, tensors = [], []

        def series(per_sample, fixed=0.0):
            return "[" + ", ".join(f"{fixed + per_sample * b:.3f}".rstrip("0").rstrip(".") for b in sizes) + "]"

        def tensor(name, per_sample):
            tensors.append(f"  - {{name: {name}, bytes: {series(round(per_sample))}}}")

        def step(name, phase, us, reads, writes):
            time = series(us, self.fixed / (4 * LAYERS))
            steps.append(f"  - {{name: {name}, phase: {phase}, time_us: {time}, reads: [{', '.join(reads)}], "
                         f"writes: [{', '.join(writes)}]}}")

        tensor("q0", self.quick)
        for i in range(1, LAYERS + 1):
            tensor(f"s{i}", self.slow)
            tensor(f"q{i}", self.quick)
            step(f"slow{i}", "forward", self.slow_us, [f"q{i - 1}"], [f"s{i}"])
            step(f"quick{i}", "forward", self.quick_us, [f"s{i}"], [f"q{i}"])
        tensor("g", self.quick)
        for i in range(LAYERS, 0, -1):
            first = i == LAYERS
            step(f"quick{i}", "backward", self.quick_us, [f"s{i}", f"q{i}"] + ([] if first else ["g"]), ["g"])
            step(f"slow{i}", "backward", 2 * self.slow_us, [f"q{i - 1}", f"s{i}", "g"], ["g"])
        path.write_text("\n".join([
            "atp_profile: 1", "model: shape",
            f"device: {{name: made up, memory_bytes: 12000000000, d2h_bytes_per_second: {self.link}, "
            f"h2d_bytes_per_second: {self.link}}}",
            f"batch_sizes: [{', '.join(map(str, sizes))}]", f"resident_bytes: {self.resident}", "tensors:", *tensors,
            "steps:", *steps]) + "\n")


# name: network, batch sizes, and whether throughputs at them are right.
CURVES = {
    # Many small steps: launches cost as much as the work of 130 samples, and reruns of quick steps are nearly free.
    "rising": (Net(6_000 * MB, 60 * MB, 3.5, 8.0, 540, 0.1, 0.01, 6_000_000_000), [64, 100, 120, 140],
               lambda rates: rates == sorted(rates)),
    # Quick steps' tensors are a good half of the memory; when they are gone the slow ones' must go.
    "peaked": (Net(8_800 * MB, 300 * MB, 9.5, 12.0, 200, 0.3, 0.02, 3_000_000_000), [30, 70, 80, 90],
               lambda rates: max(rates[1:3]) > 1.05 * rates[0] and max(rates[1:3]) > rates[3]),
    # Large tensors of slow steps, a link that cannot take them, nothing that a larger batch could save.
    "falling": (Net(6_000 * MB, 400 * MB, 60.0, 15.0, 4, 1.5, 0.3, 3_000_000_000), [7, 8, 9, 10],
                lambda rates: rates == sorted(rates, reverse=True)),
}


def curve(planner, net, sizes, scratch):
    """Throughput of model, bound and plan per batch size."""
    path = scratch / "shape.yaml"
    net.write(path, [sizes[0], sizes[-1]])
    rates = {}
    for size in sizes:
        done = subprocess.run([planner, "peak", path, "--budget", str(net.budget), "--range", f"{size}..{size}", "--csv",
                               "--points", "2", "-q"], capture_output=True, text=True, check=True)
        row = next(csv.DictReader(io.StringIO(done.stdout)))
        rates[size] = tuple(float(row[key]) for key in ("model_per_s", "bound_per_s", "per_s"))
    return rates


def found_peak(planner, net, sizes, scratch):
    """The batch size that the search finds in the same range, and its throughput."""
    done = subprocess.run([planner, "peak", scratch / "shape.yaml", "--budget", str(net.budget), "--range",
                           f"{sizes[0]}..{sizes[-1]}", "--csv", "--points", "2", "--plans", "8", "-q"],
                          capture_output=True, text=True, check=True)
    row = next(r for r in csv.DictReader(io.StringIO(done.stdout)) if "peak" in r["role"].split("+"))
    return int(row["batch_size"]), float(row["per_s"])


def wrong(name, rates, is_right, peak):
    plans = [plan for _, _, plan in rates.values()]
    for size, (model, bound, plan) in rates.items():
        if not model >= bound >= plan:
            yield f"{name}, batch size {size}: model {model}, bound {bound}, plan {plan}"
    if not is_right(plans):
        yield f"{name}: the curve has another shape: {plans}"
    if peak[1] < max(plans):
        yield f"{name}: the search stops at {peak[1]:.2f} a second, {max(plans):.2f} are reached"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("planner", type=pathlib.Path)
    parser.add_argument("--print", action="store_true", help="print the curves")
    options = parser.parse_args()
    errors = []
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        for shape, (net, sizes, is_right) in CURVES.items():
            rates = curve(options.planner, net, sizes, scratch)
            peak = found_peak(options.planner, net, sizes, scratch)
            if options.print:
                print(f"{shape}: peak at batch size {peak[0]}, {peak[1]:.2f} samples/s")
                for size, (model, bound, plan) in rates.items():
                    print(f"  batch {size:>4}  model {model:8.2f}  bound {bound:8.2f}  plan {plan:8.2f}")
            errors += wrong(shape, rates, is_right, peak)
    for error in errors:
        print(error, file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
