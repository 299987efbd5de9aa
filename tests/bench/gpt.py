#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Throughput of the gpt example in a fixed memory: as it is at the largest batch that fits, under plans at larger ones.

    python3 tests/bench/gpt.py BUILD [--fits N] [--batches N,N,...] [--runs N] [--iterations N] [-- GPT-OPTION...]

The memory is what activations need without a plan at batch --fits. Every larger batch is recorded without a limit,
planned into that memory and trained with --memory. Runs of all variants alternate, so that whatever else the machine
does meets all of them; the numbers are medians over runs of each run's median iteration.

"predicted" and "measured" are what the plan costs over the same batch without a plan and without a limit: of those two
the machine's noise takes the same share. "error" is between the planned iteration's predicted and measured time as they
are; its counterpart without a plan, "noise", is between the sum of the recorded step times and the measured iteration.
"""
import argparse
import os
import re
import statistics
import subprocess
import tempfile


def run(*command):
    env = dict(os.environ, OMP_WAIT_POLICY=os.environ.get("OMP_WAIT_POLICY", "passive"))
    done = subprocess.run([str(word) for word in command], env=env, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def must(*command):
    code, out, words = run(*command)
    if code != 0:
        raise SystemExit("%s: exit %d: %s" % (" ".join(map(str, command)), code, words))
    return out, words


def find(pattern, text):
    found = re.search(pattern, text, re.MULTILINE)
    if not found:
        raise SystemExit("no %s in: %s" % (pattern, text))
    return [float(number) for number in found.groups()]


class Bench:
    def __init__(self, args, folder):
        self.gpt = os.path.join(args.build, "examples/gpt/gpt")
        self.planner = os.path.join(args.build, "planner/atp-plan")
        self.options, self.folder, self.iterations = args.options, folder, args.iterations

    def train(self, batch, *more):
        return must(self.gpt, *self.options, "--batch", batch, "--iterations", self.iterations, "--print-losses", *more)

    def plain(self, batch, *more):
        """Milliseconds of an iteration, megabytes of the arena."""
        _, words = self.train(batch, *more)
        return find(r"^iteration ([\d.]+) ms .*arena ([\d.]+) MB", words)

    def planned(self, batch, limit):
        """The same, with the prediction first."""
        _, words = self.train(batch, "--plan", self.plan(batch), "--memory", limit)
        return find(r"^iteration +([\d.]+) ms +([\d.]+) ms", words) + find(r"^peak .* ([\d.]+) MB  ", words)

    def plan(self, batch):
        return os.path.join(self.folder, "plan%d.yaml" % batch)

    def make_plan(self, batch, limit):
        """Records and plans; the sum of step times, or nothing when the memory is too small."""
        profile = os.path.join(self.folder, "profile%d.yaml" % batch)
        _, words = self.train(batch, "--record", profile)
        resident = int(find(r", (\d+) resident bytes", words)[0])
        code, out, words = run(self.planner, profile, "--budget", resident + limit, "-o", self.plan(batch))
        if code == 1:
            print("batch %d: %s" % (batch, words.strip()))
            return None
        with open(self.plan(batch), encoding="utf-8") as file:
            return find(r"compute_us: ([\d.]+)", file.read())[0] / 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--fits", type=int, default=4)
    parser.add_argument("--batches", default="8,16,32,40")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=8)
    parser.add_argument("options", nargs="*")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(Bench(args, folder), args)


def measure(bench, args):
    arena = bench.plain(args.fits)[1]
    limit = int(arena * 1e6) + 10000  # the number has two digits behind the point
    compute = {batch: bench.make_plan(batch, limit) for batch in map(int, args.batches.split(","))}
    batches = [batch for batch in compute if compute[batch] is not None]
    fits, plain, planned = [], {batch: [] for batch in batches}, {batch: [] for batch in batches}
    for _ in range(args.runs):
        fits.append(bench.plain(args.fits, "--memory", limit)[0])
        for batch in batches:
            plain[batch].append(bench.plain(batch))
            planned[batch].append(bench.planned(batch, limit))
    base = args.fits / statistics.median(fits) * 1e3
    print("memory for activations: %.2f MB, what batch %d needs without a plan: %.1f sequences/s" %
          (limit / 1e6, args.fits, base))
    print("| batch | needs MB | of memory | sequences/s | ratio | predicted | measured | error | noise |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for batch in batches:
        alone = statistics.median(ms for ms, _ in plain[batch])
        took = statistics.median(ms for _, ms, _ in planned[batch])
        promised, need = planned[batch][0][0], plain[batch][0][1]
        print("| %d | %.1f | %.1fx | %.1f | %.2fx | %+.1f%% | %+.1f%% | %+.1f%% | %+.1f%% |" %
              (batch, need, need / arena, batch / took * 1e3, batch / took * 1e3 / base,
               100 * (promised / compute[batch] - 1), 100 * (took / alone - 1), 100 * (took / promised - 1),
               100 * (alone / compute[batch] - 1)))


if __name__ == "__main__":
    main()
