#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records a profile (version 1) of a training iteration of any torch.nn.Module, on a CPU or a CUDA device.

    record.py -o mlp.yaml                               one of the models below
    record.py --model my_package.nets:make -o net.yaml  yours: a function that returns (module, loss)

`loss` is a function without arguments that runs the forward pass and returns the loss. From a program of one's own:

    from record import record
    record(module, loss, optimizer, batch_size=32, path="net.yaml")

Needs PyTorch 2.1 or newer and nothing else. README.md says what a step and a tensor are, and what is assumed.
"""
import argparse
import importlib
import json
import os
import statistics
import sys
import time

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# Operators that update running statistics without saying so in their schema.
RUNNING_STATISTICS = ("batch_norm",)


class Op:
    """One operator as it ran: what it took, which storages it read and wrote."""

    def __init__(self, name, module, phase):
        self.name, self.module, self.phase = name, module, phase
        self.reads, self.writes, self.never = [], [], False
        self.workspace_bytes = 0
        self.times_ns = []


class Recorder(TorchDispatchMode):
    """Sees every operator of forward, backward and update, below autograd."""

    def __init__(self, module, device):
        super().__init__()
        self.device, self.phase, self.ops = device, "forward", []
        self.names = {m: name or type(module).__name__ for name, m in module.named_modules()}
        self.stack, self.module_of_node = [self.names[module]], {}
        self.storages, self.bytes, self.clocks = {}, {}, []
        self.hooks = []
        for each in module.modules():
            self.hooks.append(each.register_forward_pre_hook(lambda m, _: self.stack.append(self.names[m])))
            self.hooks.append(each.register_forward_hook(lambda *_: self.leave(), always_call=True))

    def leave(self):
        self.stack.pop()

    def close(self):
        for hook in self.hooks:
            hook.remove()

    def storage(self, tensor):
        """An id that no other storage has as long as this recorder lives; None for tensors elsewhere."""
        if tensor.device.type != self.device.type or tensor.layout != torch.strided:
            return None
        storage = tensor.untyped_storage()
        if storage.nbytes() == 0:
            return None
        # The weak reference keeps the number from being given to another storage.
        key = storage._cdata
        if key not in self.storages:
            self.storages[key] = StorageWeakRef(storage)
        self.bytes[key] = max(self.bytes.get(key, 0), storage.nbytes())
        return key

    def owner(self):
        """The module that the operator belongs to; in the backward pass the one whose node runs."""
        if self.phase != "backward":
            return self.stack[-1]
        node = torch._C._current_autograd_node()
        number = node._sequence_nr() if node is not None and hasattr(node, "_sequence_nr") else None
        # Nodes that gather gradients of weights have no number: theirs is the module before.
        last = self.ops[-1].module if self.ops and self.ops[-1].phase == "backward" else "autograd"
        return self.module_of_node.get(number, last)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        op = Op(str(func), self.owner(), self.phase)
        if self.phase == "forward":
            # The node of this operator has its number already.
            self.module_of_node[torch._C._autograd._get_sequence_nr() - 1] = op.module
        reads = [self.storage(t) for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        out = self.run(func, args, kwargs, op)
        named = list(zip(func._schema.arguments, args))
        named += [(a, kwargs[a.name]) for a in func._schema.arguments if a.name in kwargs]
        mutated = [self.storage(t) for a, value in named if a.alias_info is not None and a.alias_info.is_write
                   for t in tree_leaves(value) if isinstance(t, torch.Tensor)]
        made = [self.storage(t) for t in tree_leaves(out) if isinstance(t, torch.Tensor)]
        # A view shares the storage of what it was made of.
        made = [s for s in made if s not in reads]
        op.reads = unique(reads)
        op.writes = unique(mutated + made)
        op.never = (torch.Tag.nondeterministic_seeded in func.tags or func.namespace in ("c10d", "_c10d_functional")
                    or any(word in op.name for word in RUNNING_STATISTICS))
        self.ops.append(op)
        return out

    def run(self, func, args, kwargs, op):
        if self.device.type != "cuda":
            start = time.perf_counter_ns()
            out = func(*args, **kwargs)
            op.times_ns.append(time.perf_counter_ns() - start)
            return out
        torch.cuda.reset_peak_memory_stats(self.device)
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        out = func(*args, **kwargs)
        end.record()
        # What the operator took for itself and gave back.
        op.workspace_bytes = max(0, torch.cuda.max_memory_allocated(self.device)
                                 - torch.cuda.memory_allocated(self.device))
        self.clocks.append((op, start, end))
        return out

    def read_clocks(self):
        if self.clocks:
            torch.cuda.synchronize(self.device)
        for op, start, end in self.clocks:
            op.times_ns.append(round(start.elapsed_time(end) * 1e6))
        self.clocks = []


def unique(items):
    return list(dict.fromkeys(item for item in items if item is not None))


def resident_tensors(module, optimizer):
    """Weights, buffers, gradients and optimizer state."""
    tensors = list(module.parameters()) + list(module.buffers())
    tensors += [p.grad for p in module.parameters() if p.grad is not None]
    if optimizer is not None:
        tensors += [t for state in optimizer.state.values() for t in tree_leaves(state) if isinstance(t, torch.Tensor)]
    return tensors


def run_iteration(module, loss, optimizer, device):
    """One iteration under a recorder: it, and the storages that are resident."""
    recorder = Recorder(module, device)
    resident = set()
    try:
        resident.update(recorder.storage(t) for t in resident_tensors(module, optimizer))
        with recorder:
            value = loss()
            recorder.phase = "backward"
            value.backward()
            resident.update(recorder.storage(t) for t in resident_tensors(module, optimizer))
            recorder.phase = "update"
            if optimizer is not None:
                optimizer.step()
                optimizer.zero_grad()
        recorder.read_clocks()
    finally:
        recorder.close()
    resident.discard(None)
    return recorder, resident


def measure(module, loss, optimizer, device, iterations):
    """The last of several iterations, with the times of all: the program must do the same in each."""
    for _ in range(2):
        loss().backward()
        if optimizer is not None:
            optimizer.step()
            optimizer.zero_grad()
    times, shape = [], None
    for _ in range(iterations):
        recorder, resident = run_iteration(module, loss, optimizer, device)
        this = [(op.name, op.module, op.phase) for op in recorder.ops]
        if shape is not None and this != shape:
            where = next((i for i, (a, b) in enumerate(zip(shape, this)) if a != b), min(len(shape), len(this)))
            raise SystemExit(f"record: two iterations differ at operator {where}: a plan is for one fixed sequence")
        shape = this
        times.append([op.times_ns[0] for op in recorder.ops])
    for op, series in zip(recorder.ops, zip(*times)):
        op.times_ns = [round(statistics.median(series))]
    return recorder, resident


class Step:
    """Operators in a row of one module: what is run, and run again, as one."""

    def __init__(self, name, phase, first):
        self.name, self.phase, self.first = name, phase, first
        self.ops, self.reads, self.writes = [], [], []
        self.workspace_bytes, self.never = 0, False


def group(ops, resident):
    """Forward and backward operators as steps."""
    steps, count = [], {}
    for index, op in enumerate(ops):
        if op.phase == "update":
            continue
        if not steps or steps[-1].phase != op.phase or steps[-1].ops[0].module != op.module:
            key = (op.phase, op.module)
            count[key] = count.get(key, 0) + 1
            name = op.module if count[key] == 1 else f"{op.module}#{count[key]}"
            steps.append(Step(name, op.phase, index))
        step = steps[-1]
        step.ops.append(op)
        # Weights and running statistics must not be written twice.
        step.never = step.never or op.never or (op.phase == "forward" and any(w in resident for w in op.writes))
    return steps


def fill(steps, recorder, resident):
    """What steps read and write beyond themselves; the rest is workspace. Returns the storages, in order."""
    first, last = {}, {}
    for at, step in enumerate(steps):
        for op in step.ops:
            for storage in op.reads + op.writes:
                first.setdefault(storage, at)
                last[storage] = at
    shared, inputs, written = [], [], set()
    for at, step in enumerate(steps):
        made = set()
        for op in step.ops:
            for storage in op.reads:
                if storage in resident or storage in made or (storage not in written and first[storage] < at):
                    continue
                if storage not in written:
                    inputs.append(storage)
                    written.add(storage)
                step.reads.append(storage)
            for storage in op.writes:
                if storage not in resident:
                    made.add(storage)
                    step.writes.append(storage)
        local = {s for s in made if first[s] == at and last[s] == at}
        step.reads = [s for s in unique(step.reads) if s not in local]
        step.writes = [s for s in unique(step.writes) if s not in local]
        step.workspace_bytes = peak_of(step, local, recorder.bytes)
        shared += [s for s in step.writes if s not in written]
        written.update(step.writes)
    overwritten = set(inputs) & {s for step in steps for s in step.writes}
    if overwritten:
        raise SystemExit("record: a step writes into the batch in place; copy it first, for plans keep inputs as they are")
    return unique(inputs), unique(shared)


def peak_of(step, local, sizes):
    """The most bytes that a step's own storages take at once, with what an operator took for itself."""
    spans = {}
    for i, op in enumerate(step.ops):
        for storage in op.reads + op.writes:
            if storage in local:
                spans[storage] = (spans.get(storage, (i, i))[0], i)
    return max(op.workspace_bytes + sum(sizes[s] for s, (a, b) in spans.items() if a <= i <= b)
               for i, op in enumerate(step.ops))


def name_storages(steps, inputs):
    names = {storage: f"input.{i}" for i, storage in enumerate(inputs)}
    for step in steps:
        what = "out" if step.phase == "forward" else "grad"
        for i, storage in enumerate([s for s in step.writes if s not in names]):
            names[storage] = f"{step.name}.{what}" + (f".{i}" if i else "")
    return names


def copy_rates(device):
    """Bytes per second to the host and back, of the best of some copies of 64 MiB."""
    size = 64 << 20
    on_host = torch.empty(size, dtype=torch.uint8, pin_memory=device.type == "cuda")
    on_device = torch.zeros(size, dtype=torch.uint8, device=device)

    def rate(target, source):
        best = None
        for _ in range(5):
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            start = time.perf_counter_ns()
            target.copy_(source, non_blocking=True)
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            spent = time.perf_counter_ns() - start
            best = spent if best is None else min(best, spent)
        return size * 1_000_000_000 // max(best, 1)

    return rate(on_host, on_device), rate(on_device, on_host)


def describe(device):
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        return properties.name, properties.total_memory
    return "cpu", os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def modeline():
    """The first line of the file, which tells an editor where the schema is; nothing where there is none."""
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "schemas")
    for folder in (beside, "/usr/local/share/atp", "/usr/share/atp"):
        schema = os.path.join(os.path.normpath(folder), "profile.v1.schema.json")
        if os.path.exists(schema):
            return [f"# yaml-language-server: $schema={schema}"]
    return []


def write(path, text):
    temporary = f"{path}.tmp"
    with open(temporary, "w", encoding="utf-8") as out:
        out.write(text)
    os.replace(temporary, path)


def record(module, loss, optimizer=None, *, batch_size, path, iterations=7, device=None):
    """Writes the profile of `loss().backward()` and optimizer.step() to `path`."""
    device = torch.device(device) if device is not None else next(module.parameters()).device
    recorder, resident = measure(module, loss, optimizer, device, iterations)
    steps = group(recorder.ops, resident)
    inputs, shared = fill(steps, recorder, resident)
    names, quote = name_storages(steps, inputs), json.dumps
    d2h, h2d = copy_rates(device)
    device_name, memory = describe(device)
    update_ns = sum(op.times_ns[0] for op in recorder.ops if op.phase == "update")
    origin = f"recorded by examples/pytorch/record.py with PyTorch {torch.__version__}, median of {iterations} iterations"
    lines = [*modeline(), "atp_profile: 1", f"model: {quote(type(module).__name__)}", f"origin: {quote(origin)}",
             f"device: {{name: {quote(device_name)}, memory_bytes: {memory}, "
             f"d2h_bytes_per_second: {d2h}, h2d_bytes_per_second: {h2d}}}",
             f"batch_size: {batch_size}", f"resident_bytes: {sum(recorder.bytes[s] for s in resident)}",
             "tensors:" if inputs or shared else "tensors: []"]
    lines += [f"  - {{name: {quote(names[s])}, bytes: {recorder.bytes[s]}}}" for s in inputs + shared]
    lines.append("steps:")
    for step in steps:
        ns = sum(op.times_ns[0] for op in step.ops)
        reads, writes = (", ".join(quote(names[s]) for s in group) for group in (step.reads, step.writes))
        more = f", workspace_bytes: {step.workspace_bytes}" if step.workspace_bytes else ""
        more += ", rerun: never" if step.never and step.phase == "forward" else ""
        lines.append(f"  - {{name: {quote(step.name)}, phase: {step.phase}, time_us: {ns / 1000:.3f}, "
                     f"reads: [{reads}], writes: [{writes}]{more}}}")
    if optimizer is not None:
        lines.append(f"  - {{name: update, phase: update, time_us: {update_ns / 1000:.3f}, reads: [], writes: []}}")
    write(path, "\n".join(lines) + "\n")
    return len(steps), len(inputs) + len(shared)


def make_mlp(batch, device):
    """Dropout, which is random, and a ReLU that works in place."""
    layers = []
    for _ in range(4):
        layers += [torch.nn.Linear(256, 256), torch.nn.ReLU(inplace=True), torch.nn.Dropout(0.1)]
    module = torch.nn.Sequential(*layers).to(device)
    x, y = torch.randn(batch, 256, device=device), torch.randn(batch, 256, device=device)
    return module, lambda: torch.nn.functional.mse_loss(module(x), y)


def make_convnet(batch, device):
    """Batch normalisation, which has running statistics, and a residual sum."""

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(16, 16, 3, padding=1)
            self.norm = torch.nn.BatchNorm2d(16)

        def forward(self, x):
            return torch.relu(self.norm(self.conv(x))) + x

    module = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, padding=1), Block(), Block(), torch.nn.Flatten(),
                                 torch.nn.Linear(16 * 16 * 16, 10)).to(device)
    x, y = torch.randn(batch, 3, 16, 16, device=device), torch.randint(10, (batch,), device=device)
    return module, lambda: torch.nn.functional.cross_entropy(module(x), y)


def make_transformer(batch, device):
    layer = torch.nn.TransformerEncoderLayer(64, 4, 256, batch_first=True)
    module = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).to(device)
    x = torch.randn(batch, 32, 64, device=device)
    return module, lambda: module(x).square().mean()


MODELS = {"mlp": make_mlp, "convnet": make_convnet, "transformer": make_transformer}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="mlp", help=f"{', '.join(MODELS)}, or MODULE:FUNCTION (default: mlp)")
    parser.add_argument("--batch", type=int, default=32, help="samples per iteration (default: 32)")
    parser.add_argument("--iterations", type=int, default=7, help="iterations that are timed (default: 7)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("-o", "--output", required=True, metavar="FILE")
    options = parser.parse_args()
    device = torch.device(options.device)
    if options.model in MODELS:
        module, loss = MODELS[options.model](options.batch, device)
    elif ":" in options.model:
        place, function = options.model.split(":", 1)
        sys.path.insert(0, os.getcwd())
        module, loss = getattr(importlib.import_module(place), function)(options.batch, device)
    else:
        parser.error(f"--model: there is no {options.model}, expected {', '.join(MODELS)} or MODULE:FUNCTION")
    optimizer = torch.optim.AdamW(module.parameters())
    steps, tensors = record(module, loss, optimizer, batch_size=options.batch, path=options.output,
                            iterations=options.iterations, device=device)
    print(f"{options.output}: {steps} steps and the update, {tensors} tensors", file=sys.stderr)


if __name__ == "__main__":
    main()
