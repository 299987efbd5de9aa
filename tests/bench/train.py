#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What plans are worth to the examples' networks: throughput in a fixed memory, and the least memory that will do.

    python3 tests/bench/train.py BUILD [--runs N] [--iterations N] [--largest N] [CASE...]

A case is "MODEL FITS OPTION...", FITS at least 2: the memory for activations is what the model needs at batch FITS
without a plan, so that FITS is the largest batch that trains there as it is. Profiles of batches FITS / 2 and FITS,
recorded within that memory, are merged into one, of which `atp-plan peak` chooses the batch. Runs of all variants
alternate, so that whatever else the machine does meets all of them; times are medians over runs of each run's median
iteration.

    plain      at batch FITS, within the memory
    peak       the plan that `atp-plan peak` made, within the memory, its times extrapolated from the small batches
    planned    the same batch and memory, planned from a profile recorded at that batch (without a limit)
    unlimited  the same batch without a plan and without a limit
    least      planned into the least memory that the planner knows for this batch

"error" is measured over predicted time; for `unlimited`, over the sum of the recorded step times: the machine's own
noise, between one recording and later runs. "less noise" is the error of what the plan costs: time over that of
`unlimited`, measured over predicted. "memory" is parameters, optimizer and activations that `unlimited` needs, over
those that the variant has. All losses (and running statistics) of a batch must be the same bits.
"""
import argparse
import os
import re
import statistics
import subprocess
import tempfile

CASES = ["gpt 2 --layers 12", "gpt 2 --layers 4 --width 512 --context 16", "resnet 2 --blocks 18 --width 8"]
RECORDED = ("planned", "least")  # from one profile with `unlimited`
MORE = {"resnet": ["--print-statistics"]}


def run(*command):
    env = dict(os.environ, OMP_WAIT_POLICY=os.environ.get("OMP_WAIT_POLICY", "passive"))
    done = subprocess.run([str(word) for word in command], env=env, capture_output=True, text=True, check=False)
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
    def __init__(self, args, case, folder):
        words = case.split()
        self.model, self.fits, self.options = words[0], int(words[1]), words[2:]
        self.program = os.path.join(args.build, "examples", self.model, self.model)
        self.planner = os.path.join(args.build, "planner/atp-plan")
        self.folder, self.iterations = folder, args.iterations
        self.losses = {}
        # With too little memory it says how much it needs, and does not begin.
        _, _, words = run(self.program, *self.options, "--batch", self.fits, "--memory", 1)
        self.resident, self.limit = map(int, find(r", (\d+) resident bytes", words) + find(r"needs (\d+) bytes", words))

    def path(self, name):
        return os.path.join(self.folder, name)

    def must_train(self, batch, *more):
        return must(self.program, *self.options, *MORE.get(self.model, []), "--batch", batch, "--iterations",
                    self.iterations, "--print-losses", *more)

    def train(self, batch, *more):
        """Messages; and the losses are those of every other run of this batch."""
        losses, words = self.must_train(batch, *more)
        if self.losses.setdefault(batch, losses) != losses:
            raise SystemExit("batch %d %s: other losses" % (batch, " ".join(map(str, more))))
        return words

    def plain(self, batch, *more):
        """Milliseconds of an iteration."""
        return find(r"^iteration ([\d.]+) ms", self.train(batch, *more))[0]

    def planned(self, batch, name, memory):
        words = self.train(batch, "--plan", self.path(name), "--memory", memory)
        return find(r"^iteration +[\d.]+ ms +([\d.]+) ms", words)[0]

    def header(self, name, key):
        with open(self.path(name), encoding="utf-8") as file:
            return find(r"\b%s: ([\d.]+)" % key, file.read())[0]

    def solve(self, profile, budget, name):
        must(self.planner, self.path(profile), "--budget", budget, "-o", self.path(name))

    def choose_batch(self, largest):
        """The peak's batch, from what can be recorded within the memory."""
        batches = [self.fits // 2, self.fits]
        for batch in batches:
            # These times are extrapolated, and their errors with them: three times the iterations.
            self.must_train(batch, "--memory", self.limit, "--record", self.path("profile%d" % batch), "--iterations",
                            3 * self.iterations)
        must(self.planner, "merge", *[self.path("profile%d" % batch) for batch in batches], "-o", self.path("small"))
        must(self.planner, "peak", self.path("small"), "--budget", self.resident + self.limit, "--range",
             "1..%d" % largest, "-q", "-o", self.path("peak"))
        return int(self.header("peak", "batch_size"))


def measure(bench, args):
    batch = bench.choose_batch(args.largest)
    bench.train(batch, "--record", bench.path("large"))
    bench.solve("large", bench.resident + bench.limit, "planned")
    _, _, words = run(bench.planner, bench.path("large"), "--budget", 1, "-o", bench.path("none"))
    least = int(find(r"least budget is (\d+)", words)[0])
    bench.solve("large", least, "least")
    variants = {
        "plain": lambda: bench.plain(bench.fits, "--memory", bench.limit),
        "peak": lambda: bench.planned(batch, "peak", bench.limit),
        "planned": lambda: bench.planned(batch, "planned", bench.limit),
        "unlimited": lambda: bench.plain(batch),
        "least": lambda: bench.planned(batch, "least", least - bench.resident),
    }
    taken = {name: [] for name in variants}
    for _ in range(args.runs):
        for name, variant in variants.items():
            taken[name].append(variant())
    report(bench, batch, least, {name: statistics.median(ms) for name, ms in taken.items()})


def report(bench, batch, least, took):
    _, _, words = run(bench.program, *bench.options, "--batch", batch, "--memory", 1)
    need, base = int(find(r"needs (\d+) bytes", words)[0]), bench.fits / took["plain"]
    whole = bench.resident + need
    activations = {"plain": bench.limit, "peak": bench.limit, "planned": bench.limit, "unlimited": need,
                   "least": least - bench.resident}
    promised = {name: bench.header(name, "iteration_us") / 1e3 for name in ("peak", "planned", "least")}
    promised["unlimited"] = bench.header("planned", "compute_us") / 1e3
    print("\n%s %s: %.2f MB resident; peak at batch %d" %
          (bench.model, " ".join(bench.options), bench.resident / 1e6, batch))
    print("| | batch | activations MB | memory | samples/s | ratio | predicted ms | measured ms | error | less noise |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, ms in took.items():
        size = bench.fits if name == "plain" else batch
        error = "| %.1f | |" % ms
        if name in promised:
            off = ms / promised[name]
            noise = took["unlimited"] / promised["unlimited"]
            error = "%.1f | %.1f | %+.1f%% | %s" % (promised[name], ms, 100 * (off - 1),
                                                   "%+.1f%%" % (100 * (off / noise - 1)) if name in RECORDED else "")
        memory = "" if name == "plain" else "%.1fx" % (whole / (bench.resident + activations[name]))
        print("| %s | %d | %.2f | %s | %.1f | %.2fx | %s |" %
              (name, size, activations[name] / 1e6, memory, size / ms * 1e3, size / ms / base, error))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=6)
    parser.add_argument("--largest", type=int, default=32, help="batch that peak may choose")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    args = parser.parse_intermixed_args()
    print("medians of %d runs of %d iterations" % (args.runs, args.iterations))
    for case in args.cases or CASES:
        with tempfile.TemporaryDirectory() as folder:
            measure(Bench(args, case, folder), args)


if __name__ == "__main__":
    main()
