#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What proving a bound takes with the plan's certificate, and without it.

    tests/bench/proofs.py BUILD [PROFILE...] [--families LIST] [--steps LIST] [--budget SHARE]

plans each profile, and profiles of the families of scaling.py at several lengths, and prints one line for each: steps;
rows; kilobytes of the plan file, and of its certificate; milliseconds of processor time of `atp-plan check` without
--profile, so with no bound to prove, with --max-gap from the certificate, and with --max-gap by solving again, for
which the certificate is cut off. Of three runs the fastest counts; one is enough where it is long.
"""
import argparse
import pathlib
import re
import sys
import tempfile

import scaling

RUNS = 3
LONG = 5  # seconds: nothing disturbs such a run much
ANY_GAP = "1000%"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="build directory")
    parser.add_argument("profiles", nargs="*", type=pathlib.Path, metavar="PROFILE")
    parser.add_argument("--families", default="narrow", help="(default: %(default)s)")
    parser.add_argument("--steps", default="400,1300,5000", help="about (default: %(default)s)")
    parser.add_argument("--budget", default="40%", help="(default: %(default)s)")
    parser.add_argument("--timeout", type=int, default=600, help="seconds for one run (default: %(default)s)")
    return parser.parse_args()


def milliseconds(command, timeout):
    """Of the fastest run, in words. Every run must succeed, unless the time is up."""
    best = None
    for _ in range(RUNS):
        used = scaling.run(command, timeout)
        if used["code"] < 0 and used["clock"] >= timeout:
            return f">{timeout * 1000}"
        if used["code"] != 0:
            sys.exit(f"proofs.py: {' '.join(map(str, command))}: {used['words'].strip() or used['code']}")
        best = min(best or used["seconds"], used["seconds"])
        if used["seconds"] > LONG:
            break
    return f"{best * 1000:.1f}"


def line(name, planner, profile, scratch, options):
    plan, bare = scratch / "plan.yaml", scratch / "bare.yaml"
    used = scaling.run([planner, profile, "--budget", options.budget, "-q", "-o", plan], options.timeout)
    if used["code"] != 0:
        sys.exit(f"proofs.py: {name}: {used['words'].strip() or 'the time was up'}")
    text = plan.read_text()
    body, key, certificate = text.partition("\ncertificate: |")
    bare.write_text(body + "\n")
    rows = re.search(r"rows (\d+)", certificate)
    alone = milliseconds([planner, "check", plan, "-q"], options.timeout)
    bound = ["--profile", profile, "--max-gap", ANY_GAP, "-q"]
    certified = milliseconds([planner, "check", plan, *bound], options.timeout)
    solved = milliseconds([planner, "check", bare, *bound], options.timeout)
    return (f"{name:<32} {text.count('- [run,'):>6} {rows.group(1) if rows else '-':>6} {len(text) / 1000:>8.1f} "
            f"{len(key + certificate) / 1000:>12.1f} {alone:>8} {certified:>12} {solved:>10}")


def main():
    options = arguments()
    planner = options.build / "planner" / "atp-plan"
    generator = scaling.load_generator()
    print(f"{'profile':<32} {'steps':>6} {'rows':>6} {'plan, kB':>8} {'certificate':>12} {'check':>8} {'certified':>12} "
          f"{'solved':>10}")
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        for profile in options.profiles:
            print(line(profile.stem, planner, profile, scratch, options), flush=True)
        for family in options.families.split(",") if options.families else []:
            for steps in map(int, options.steps.split(",")):
                profile = scratch / "profile.yaml"
                scaling.write_profile(generator, family, steps, profile)
                print(line(f"{family}-{steps}", planner, profile, scratch, options), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
