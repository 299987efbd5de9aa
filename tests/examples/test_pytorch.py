#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Profiles that examples/pytorch/record.py records are read, planned and proved, and say what the networks do.

    test_pytorch.py RECORD.PY ATP-PLAN

Exit status 77, which meson takes for skipped, where Python has no PyTorch; ATP_TORCH_PYTHON names another Python.
"""
import os
import re
import subprocess
import sys
import tempfile

STEP = re.compile(r'  - \{name: "(.*?)", phase: (\w+), time_us: ([0-9.]+), reads: \[(.*?)\], writes: \[(.*?)\](.*)\}')
TENSOR = re.compile(r'  - \{name: "(.*?)", bytes: (\d+)\}')

# What a user has: a module that is not one of the example's, with a batch in which it writes when it is told to.
OWN = """
import torch
def make(batch, device):
    module = torch.nn.Linear(3, 5, bias=False).to(device)
    x = torch.ones(batch, 3, device=device)
    return module, lambda: module(x).sum()
def spoil(batch, device):
    module = torch.nn.Linear(3, 5, bias=False).to(device)
    x = torch.ones(batch, 3, device=device)
    return module, lambda: module(x.mul_(2)).sum()
def change(batch, device):
    module, calls = torch.nn.Linear(3, 5).to(device), []
    def loss():
        calls.append(1)
        y = module(torch.ones(batch, 3, device=device))
        return (y * 2 if len(calls) % 2 else y).sum()
    return module, loss
"""


class Recorded:
    def __init__(self, text):
        self.text = text
        self.tensors = {name: int(size) for name, size in TENSOR.findall(text)}
        split = [(name, phase, float(us), [t.strip('"') for t in reads.split(", ") if t],
                  [t.strip('"') for t in writes.split(", ") if t], more)
                 for name, phase, us, reads, writes, more in STEP.findall(text)]
        self.steps = {(name, phase): rest for name, phase, *rest in split}
        self.shape = re.sub(r"time_us: [0-9.]+|[dh]2[hd]_bytes_per_second: [0-9]+", "", text)

    def never(self):
        return [name for (name, _), rest in self.steps.items() if "rerun: never" in rest[3]]


class Test:
    def __init__(self, python, script, planner, scratch):
        self.python, self.script, self.planner, self.scratch = python, script, planner, scratch
        self.passed = self.failed = 0

    def holds(self, name, condition, detail=""):
        self.passed += bool(condition)
        self.failed += not condition
        print(f"{'ok     ' if condition else 'FAILED '} {name}", "" if condition else detail)

    def run(self, model, batch):
        path = os.path.join(self.scratch, "profile.yaml")
        return path, subprocess.run([self.python, "-W", "ignore", self.script, "--model", model, "--device", "cpu",
                                     "--batch", str(batch), "--iterations", "3", "-o", path],
                                    cwd=self.scratch, capture_output=True, text=True, check=False)

    def record(self, model, batch=8, budget="90%"):
        path, done = self.run(model, batch)
        self.holds(f"{model}: is recorded", done.returncode == 0, done.stderr)
        with open(path, encoding="utf-8") as text:
            recorded = Recorded(text.read())
        plan = path + ".plan"
        for name, command in [("is planned", [path, "--budget", budget, "-q", "-o", plan]),
                              ("the plan is proved", ["check", plan, "--profile", path, "-q"])]:
            done = subprocess.run([self.planner, *command], capture_output=True, text=True, check=False)
            self.holds(f"{model}: {name}", done.returncode == 0, done.stderr)
        schema = recorded.text.partition("\n")[0].removeprefix("# yaml-language-server: $schema=")
        self.holds(f"{model}: names the schema", os.path.exists(schema), schema)
        self.holds(f"{model}: steps take time", all(rest[0] > 0 for rest in recorded.steps.values()))
        return recorded

    def refuses(self, model, words):
        path, done = self.run(model, 4)
        self.holds(f"{model}: is refused", done.returncode != 0 and words in done.stderr, done.stderr)
        self.holds(f"{model}: leaves no file", not os.path.exists(path))

    def everything(self):
        with open(os.path.join(self.scratch, "own.py"), "w", encoding="utf-8") as out:
            out.write(OWN)
        self.refuses("own:spoil", "writes into the batch")
        self.refuses("own:change", "two iterations differ")
        self.refuses("nothing", "there is no nothing")
        own = self.record("own:make", 4, "100%")
        # sum() needs the shape only: what the layer writes is read by it, and by nobody later.
        self.holds("own: sizes are those of the shapes", own.tensors["input.0"] == 48 and own.tensors["Linear.out"] == 4,
                   own.tensors)
        self.holds("own: 15 weights, their gradients and two moments", "resident_bytes: 244\n" in own.text, own.text[:500])
        mlp = self.record("mlp")
        self.holds("mlp: dropout must not run twice", mlp.never() == ["2", "5", "8", "11"], mlp.never())
        relu = mlp.steps["1", "forward"]
        self.holds("mlp: relu works in place", relu[1] == relu[2] == ["0.out"], relu)
        self.holds("mlp: a layer's input is read again", "input.0" in mlp.steps["0", "backward"][1])
        self.holds("mlp: sizes are those of the shapes", mlp.tensors["0.out"] == 8 * 256 * 4)
        self.holds("mlp: the same network is the same profile", self.record("mlp").shape == mlp.shape)
        net = self.record("convnet")
        self.holds("convnet: running statistics are not updated twice", net.never() == ["1.norm", "2.norm"], net.never())
        self.holds("convnet: the residual is read", "0.out" in net.steps["1", "forward"][1])
        transformer = self.record("transformer")
        # Attention drops out too.
        random = [f"layers.{i}.{part}" for i in (0, 1) for part in ("self_attn", "dropout1", "dropout", "dropout2")]
        self.holds("transformer: only dropout is random", transformer.never() == random, transformer.never())
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed else 0


def main():
    script, planner = (os.path.abspath(path) for path in sys.argv[1:3])
    python = os.environ.get("ATP_TORCH_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode != 0:
        print(f"skipped: {python} has no PyTorch")
        return 77
    with tempfile.TemporaryDirectory() as scratch:
        return Test(python, script, planner, scratch).everything()


if __name__ == "__main__":
    sys.exit(main())
