#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes modelled profiles (atp_profile 1): real shapes, times from a roofline, nothing measured.

A step takes launch overhead + max(arithmetic / attainable rate, bytes moved / attainable
bandwidth). All arithmetic is on integers, so that the same options give the same bytes anywhere.
See profiles/README.md for what each model assumes.

    profiles/generate.py gpt2-small --batch 8 > profiles/gpt2-small_b8_v100-modelled.yaml
"""

import argparse
import sys

# Peaks from the public data sheets (NVIDIA V100, A100 80GB, H200; dense rates); links as PCIe 3.0, 4.0 and 5.0 x16
# give them, which is an assumption.
GPUS = {
    "v100": {
        "name": "NVIDIA V100-SXM2-16GB",
        "memory_bytes": 16 * 10**9,
        "fp16_flops": 125 * 10**12,  # tensor cores
        "fp32_flops": 157 * 10**11,
        "bandwidth": 900 * 10**9,
        "link": 12 * 10**9,
    },
    "a100": {
        "name": "NVIDIA A100-SXM4-80GB",
        "memory_bytes": 80 * 10**9,
        "fp16_flops": 312 * 10**12,
        "fp32_flops": 195 * 10**11,
        "bandwidth": 2039 * 10**9,
        "link": 24 * 10**9,
    },
    "h200": {
        "name": "NVIDIA H200",
        "memory_bytes": 141 * 10**9,
        "fp16_flops": 989 * 10**12,
        "fp32_flops": 67 * 10**12,
        "bandwidth": 4800 * 10**9,
        "link": 50 * 10**9,
    },
}
MATMUL_PERCENT = 50
CONV_PERCENT = 70
BANDWIDTH_PERCENT = 80
LAUNCH_NS = 5000
COPY_LATENCY_NS = 10000
CONV_WORKSPACE = 32 << 20


class Profile:
    """Collects the tensors and steps of one iteration at one batch size."""

    def __init__(self, gpu, batch, half):
        self.gpu = gpu
        self.batch = batch
        self.flops_rate = gpu["fp16_flops" if half else "fp32_flops"]
        self.sizes = {}
        self.steps = []
        self.resident = 0
        self.phase = "forward"

    def tensor(self, name, size):
        assert name not in self.sizes, name
        self.sizes[name] = size
        return name

    def step(self, name, reads, writes, flops=0, percent=MATMUL_PERCENT, weights=0, rerun=True,
             workspace=0):
        """`weights`: bytes of resident memory that the step moves besides its tensors."""
        moved = weights + sum(self.sizes[t] for t in reads) + sum(self.sizes[t] for t in writes)
        arithmetic = ceil_div(flops * 100 * 10**9, self.flops_rate * percent)
        memory = ceil_div(moved * 100 * 10**9, self.gpu["bandwidth"] * BANDWIDTH_PERCENT)
        time_ns = LAUNCH_NS + max(arithmetic, memory)
        self.steps.append((name, self.phase, time_ns, list(reads), list(writes), rerun, workspace))


def ceil_div(a, b):
    return -(-a // b)


GPT2 = {  # layers, width, heads
    "gpt2-small": (12, 768, 12),
    "gpt2-medium": (24, 1024, 16),
    "gpt2-large": (36, 1280, 20),
    "gpt2-xl": (48, 1600, 25),
}
GPT2_VOCABULARY = 50257


def gpt2(p, layers, width, heads, length):
    """Mixed precision, dropout on, attention written out."""
    half, rows = 2, p.batch * length
    act = rows * width * half
    att = p.batch * heads * length * length * half
    parameters = (GPT2_VOCABULARY + 1024) * width + layers * (12 * width + 13) * width + 2 * width
    p.resident = parameters * 16  # fp16 weight and gradient; fp32 weight and two moments

    def matmul(name, reads, writes, n_in, n_out, times=1):
        p.step(name, reads, writes, flops=times * 2 * rows * n_in * n_out,
               weights=times * n_in * n_out * half)

    p.tensor("tokens", rows * 8)
    p.tensor("targets", rows * 8)
    p.step("embed", ["tokens"], [p.tensor("embed", act)], weights=act)
    p.step("embed.dropout", ["embed"], [p.tensor("h0.x", act), p.tensor("embed.mask", act // half)],
           rerun=False)
    for i in range(layers):
        h, x = f"h{i}.", f"h{i}.x"

        def new(name, size=act):
            return p.tensor(h + name, size)

        def dropout(name, source, size):
            p.step(h + name, [h + source], [new(name, size), new(name + ".mask", size // half)],
                   rerun=False)

        p.step(h + "ln1", [x], [new("ln1"), new("ln1.stats", rows * 8)])
        matmul(h + "qkv", [h + "ln1"], [new("qkv", 3 * act)], width, 3 * width)
        p.step(h + "scores", [h + "qkv"], [new("scores", att)], flops=2 * rows * length * width)
        p.step(h + "softmax", [h + "scores"], [new("probs", att)])
        dropout("attention.dropout", "probs", att)
        p.step(h + "context", [h + "attention.dropout", h + "qkv"], [new("context")],
               flops=2 * rows * length * width)
        matmul(h + "proj", [h + "context"], [new("proj")], width, width)
        dropout("proj.dropout", "proj", act)
        p.step(h + "add1", [x, h + "proj.dropout"], [new("mid")])
        p.step(h + "ln2", [h + "mid"], [new("ln2"), new("ln2.stats", rows * 8)])
        matmul(h + "up", [h + "ln2"], [new("up", 4 * act)], width, 4 * width)
        p.step(h + "gelu", [h + "up"], [new("gelu", 4 * act)])
        matmul(h + "down", [h + "gelu"], [new("down")], 4 * width, width)
        dropout("down.dropout", "down", act)
        p.step(h + "add2", [h + "mid", h + "down.dropout"], [p.tensor(f"h{i + 1}.x", act)])
    last = f"h{layers}.x"
    p.step("ln_f", [last], [p.tensor("ln_f", act), p.tensor("ln_f.stats", rows * 8)])
    logits = rows * GPT2_VOCABULARY * half
    matmul("head", ["ln_f"], [p.tensor("logits", logits)], width, GPT2_VOCABULARY)
    p.step("loss", ["logits", "targets"], [p.tensor("loss.lse", rows * 4), p.tensor("loss", 4)])

    p.phase = "backward"
    p.step("loss", ["logits", "targets", "loss.lse"], [p.tensor("logits.grad", logits)])
    matmul("head", ["ln_f", "logits.grad"], [p.tensor("ln_f.grad", act)], width, GPT2_VOCABULARY, 2)
    # One storage holds the gradient of the residual stream; every layer norm adds to it in place.
    p.step("ln_f", [last, "ln_f.stats", "ln_f.grad"], [p.tensor("x.grad", act)])
    for i in reversed(range(layers)):
        h, x = f"h{i}.", f"h{i}.x"

        def grad(name, size=act):
            return p.tensor(h + name + ".grad", size)

        p.step(h + "down.dropout", [h + "down.dropout.mask", "x.grad"], [grad("down")])
        matmul(h + "down", [h + "gelu", h + "down.grad"], [grad("gelu", 4 * act)], 4 * width, width,
               2)
        p.step(h + "gelu", [h + "up", h + "gelu.grad"], [grad("up", 4 * act)])
        matmul(h + "up", [h + "ln2", h + "up.grad"], [grad("ln2")], width, 4 * width, 2)
        p.step(h + "ln2", [h + "mid", h + "ln2.stats", h + "ln2.grad", "x.grad"], ["x.grad"])
        p.step(h + "proj.dropout", [h + "proj.dropout.mask", "x.grad"], [grad("proj")])
        matmul(h + "proj", [h + "context", h + "proj.grad"], [grad("context")], width, width, 2)
        p.step(h + "context", [h + "attention.dropout", h + "qkv", h + "context.grad"],
               [grad("attention.dropout", att), grad("qkv", 3 * act)],
               flops=4 * rows * length * width)
        p.step(h + "attention.dropout", [h + "attention.dropout.mask", h + "attention.dropout.grad"],
               [grad("probs", att)])
        p.step(h + "softmax", [h + "probs", h + "probs.grad"], [grad("scores", att)])
        p.step(h + "scores", [h + "qkv", h + "scores.grad", h + "qkv.grad"], [h + "qkv.grad"],
               flops=4 * rows * length * width)
        matmul(h + "qkv", [h + "ln1", h + "qkv.grad"], [grad("ln1")], width, 3 * width, 2)
        p.step(h + "ln1", [x, h + "ln1.stats", h + "ln1.grad", "x.grad"], ["x.grad"])
    p.step("embed.dropout", ["embed.mask", "x.grad"], [p.tensor("embed.grad", act)])
    p.step("embed", ["tokens", "embed.grad"], [], weights=act)
    p.phase = "update"
    p.step("adamw", [], [], weights=parameters * 28)


class Net:
    """Convolutional networks in fp32: every layer adds its forward step now and files its backward
    step, which the end of the iteration runs in reverse."""

    def __init__(self, p):
        self.p = p
        self.shapes = {}
        self.backward = []
        self.parameters = 0

    def new(self, name, channels, size):
        self.shapes[name] = (channels, size)
        return self.p.tensor(name, self.p.batch * channels * size * size * 4)

    def give_grad(self, name, step, reads, **cost):
        """Runs a backward step that yields a gradient of `name`; adds it to one that is there."""
        p, grad = self.p, name + ".grad"
        if grad not in p.sizes:
            p.step(step, reads, [p.tensor(grad, p.sizes[name])], **cost)
            return
        part = p.tensor(f"{grad}.{step}", p.sizes[name])
        p.step(step, reads, [part], **cost)
        p.step(f"{step}.accumulate", [grad, part], [grad])

    def conv(self, name, source, channels, kernel, stride=1, is_input=False, up=1):
        p = self.p
        in_channels, in_size = self.shapes[source]
        size = in_size * up // stride
        self.new(name, channels, size)
        weights = kernel * kernel * in_channels * channels
        flops = 2 * p.batch * size * size * weights // (up * up)
        cost = {"percent": CONV_PERCENT, "workspace": CONV_WORKSPACE if kernel > 1 else 0}
        p.step(name, [source], [name], flops=flops, weights=4 * weights, **cost)
        self.parameters += weights

        def backward():
            reads = [source, name + ".grad"]
            if is_input:
                p.step(name, reads, [], flops=flops, weights=4 * weights, **cost)
            else:
                self.give_grad(source, name, reads, flops=2 * flops, weights=8 * weights, **cost)
        self.backward.append(backward)
        return name

    def norm(self, name, source):
        p = self.p
        channels, size = self.shapes[source]
        self.new(name, channels, size)
        stats = p.tensor(name + ".stats", 8 * channels)
        # Two passes over the input: statistics, then the values.
        p.step(name, [source], [name, stats], weights=p.sizes[source])
        self.parameters += 2 * channels
        self.backward.append(lambda: self.give_grad(
            source, name, [source, stats, name + ".grad"], weights=2 * p.sizes[source]))
        return name

    def relu(self, name, tensor):
        """In place, forward and backward."""
        p = self.p
        p.step(name, [tensor], [tensor])
        self.backward.append(
            lambda: p.step(name, [tensor, tensor + ".grad"], [tensor + ".grad"]))

    def conv_norm(self, prefix, source, channels, kernel, stride=1, is_input=False):
        conv = self.conv(prefix + "conv", source, channels, kernel, stride, is_input)
        return self.norm(prefix + "bn", conv)

    def add(self, name, tensor, other):
        """tensor += other; the gradient goes to both."""
        p = self.p
        p.step(name, [tensor, other], [tensor])
        self.backward.append(lambda: self.give_grad(other, name, [tensor + ".grad"]))

    def pool(self, name, source, stride):
        p = self.p
        channels, size = self.shapes[source]
        self.new(name, channels, size // stride)
        indices = p.tensor(name + ".indices", 2 * p.sizes[name])
        p.step(name, [source], [name, indices])
        self.backward.append(
            lambda: self.give_grad(source, name, [indices, name + ".grad"]))
        return name

    def concat(self, name, first, second):
        p = self.p
        self.new(name, self.shapes[first][0] + self.shapes[second][0], self.shapes[first][1])
        p.step(name, [first, second], [name])

        def backward():
            self.give_grad(first, name + ".first", [name + ".grad"])
            self.give_grad(second, name + ".second", [name + ".grad"])
        self.backward.append(backward)
        return name

    def run_backward(self, bytes_per_parameter):
        self.p.phase = "backward"
        for backward in reversed(self.backward):
            backward()
        self.p.phase = "update"
        self.p.step("sgd", [], [], weights=self.parameters * 20)
        self.p.resident = self.parameters * bytes_per_parameter


RESNET = {"resnet50": (3, 4, 6, 3), "resnet101": (3, 4, 23, 3), "resnet152": (3, 8, 36, 3)}


def resnet(p, blocks, image):
    """Bottleneck blocks with the stride in the 3x3 convolution; fp32; SGD with momentum."""
    net = Net(p)
    net.new("image", 3, image)
    p.tensor("labels", p.batch * 8)
    x = net.conv_norm("stem.", "image", 64, 7, 2, is_input=True)
    net.relu("stem.relu", x)
    x = net.pool("stem.pool", x, 2)
    for stage, count in enumerate(blocks):
        width = 64 << stage
        for block in range(count):
            prefix = f"s{stage + 1}.{block}."
            stride = 2 if stage > 0 and block == 0 else 1
            y = net.conv_norm(prefix + "a.", x, width, 1)
            net.relu(prefix + "a.relu", y)
            y = net.conv_norm(prefix + "b.", y, width, 3, stride)
            net.relu(prefix + "b.relu", y)
            y = net.conv_norm(prefix + "c.", y, 4 * width, 1)
            skip = x if block > 0 else net.conv_norm(prefix + "skip.", x, 4 * width, 1, stride)
            net.add(prefix + "add", y, skip)
            net.relu(prefix + "relu", y)
            x = y
    channels = net.shapes[x][0]
    classes, features = 1000, p.batch * channels * 4
    p.step("avgpool", [x], [p.tensor("features", features)])
    p.step("fc", ["features"], [p.tensor("logits", p.batch * classes * 4)],
           flops=2 * p.batch * channels * classes, weights=4 * channels * classes)
    p.step("loss", ["logits", "labels"], [p.tensor("probs", p.batch * classes * 4),
                                          p.tensor("loss", 4)])
    net.parameters += channels * classes + classes
    p.phase = "backward"
    p.step("loss", ["probs", "labels"], [p.tensor("logits.grad", p.batch * classes * 4)])
    p.step("fc", ["features", "logits.grad"], [p.tensor("features.grad", features)],
           flops=4 * p.batch * channels * classes, weights=8 * channels * classes)
    p.step("avgpool", ["features.grad"], [p.tensor(x + ".grad", p.sizes[x])])
    net.run_backward(12)  # weight, gradient, momentum


def unet(p, image):
    """Four levels, 64 channels at the top, padded convolutions with batch normalisation, fp32."""
    net = Net(p)
    net.new("image", 3, image)
    p.tensor("labels", p.batch * image * image * 8)

    def double(prefix, source, channels, is_input=False):
        for part in ("a.", "b."):
            source = net.conv_norm(prefix + part, source, channels, 3, is_input=is_input)
            net.relu(prefix + part + "relu", source)
            is_input = False
        return source

    x, skips = "image", []
    for level in range(4):
        skips.append(double(f"down{level}.", x, 64 << level, x == "image"))
        x = net.pool(f"down{level}.pool", skips[-1], 2)
    x = double("bottom.", x, 64 << 4)
    for level in reversed(range(4)):
        x = net.conv(f"up{level}.deconv", x, 64 << level, 2, up=2)
        x = net.concat(f"up{level}.concat", skips[level], x)
        x = double(f"up{level}.", x, 64 << level)
    x = net.conv("out", x, 2, 1)
    p.step("loss", [x, "labels"], [p.tensor("probs", p.sizes[x]), p.tensor("loss", 4)])
    p.phase = "backward"
    p.step("loss", ["probs", "labels"], [p.tensor(x + ".grad", p.sizes[x])])
    net.run_backward(12)


def chain(p, layers, width):
    """`layers` equal dense layers in fp32: how planning time grows with depth."""
    act = p.batch * width * 4
    p.resident = layers * width * width * 12
    cost = {"flops": 2 * p.batch * width * width, "weights": 4 * width * width}
    p.tensor("a0", act)
    for i in range(layers):
        p.step(f"l{i}", [f"a{i}"], [p.tensor(f"a{i + 1}", act)], **cost)
    p.phase = "backward"
    p.step("loss", [f"a{layers}"], [p.tensor(f"a{layers}.grad", act)])
    for i in reversed(range(layers)):
        writes = [p.tensor(f"a{i}.grad", act)] if i > 0 else []
        p.step(f"l{i}", [f"a{i}", f"a{i + 1}.grad"], writes,
               **{key: 2 * value for key, value in cost.items()})
    p.phase = "update"
    p.step("sgd", [], [], weights=layers * width * width * 20)


def build(options, batch):
    gpu, model = GPUS[options.gpu], options.model
    p = Profile(gpu, batch, half=model in GPT2)
    if model in GPT2:
        gpt2(p, *GPT2[model], options.length)
    elif model in RESNET:
        resnet(p, RESNET[model], options.image or 224)
    elif model == "unet":
        unet(p, options.image or 512)
    else:
        chain(p, options.layers, options.width)
    return p


def series(values, text=str):
    """One value where all batch sizes agree, else a list."""
    if len(set(values)) == 1:
        return text(values[0])
    return "[" + ", ".join(text(v) for v in values) + "]"


def microseconds(ns):
    return f"{ns // 1000}.{ns % 1000:03d}"


def describe(options):
    words = [options.model, "--batch", ",".join(str(b) for b in options.batch)]
    if options.model in GPT2:
        words += ["--length", str(options.length)]
    elif options.model == "chain":
        words += ["--layers", str(options.layers), "--width", str(options.width)]
    elif options.image:
        words += ["--image", str(options.image)]
    return " ".join(words + ["--gpu", options.gpu])


def write(options, out):
    profiles = [build(options, batch) for batch in options.batch]
    first, gpu = profiles[0], GPUS[options.gpu]
    batch = f"batch_size: {options.batch[0]}" if len(profiles) == 1 else \
        f"batch_sizes: [{', '.join(str(b) for b in options.batch)}]"
    name = f"chain-{options.layers}" if options.model == "chain" else options.model
    if options.schema:
        out.write(f"# yaml-language-server: $schema={options.schema}\n")
    out.write(f"""\
# SPDX-License-Identifier: Apache-2.0
atp_profile: 1
model: {name}
origin: "modelled, nothing here is measured: roofline of the data sheet, profiles/generate.py \
{describe(options)}"
device: {{name: {gpu['name']}, memory_bytes: {gpu['memory_bytes']}, d2h_bytes_per_second: \
{gpu['link']}, h2d_bytes_per_second: {gpu['link']}, copy_latency_us: {microseconds(COPY_LATENCY_NS)}}}
{batch}
resident_bytes: {series([p.resident for p in profiles])}
tensors:
""")
    for tensor in first.sizes:
        size = series([p.sizes[tensor] for p in profiles])
        out.write(f"  - {{name: {tensor}, bytes: {size}}}\n")
    out.write("steps:\n")
    for index, (step, phase, _, reads, writes, rerun, workspace) in enumerate(first.steps):
        time = series([p.steps[index][2] for p in profiles], microseconds)
        out.write(f"  - {{name: {step}, phase: {phase}, time_us: {time}, "
                  f"reads: [{', '.join(reads)}], writes: [{', '.join(writes)}]"
                  f"{f', workspace_bytes: {workspace}' if workspace else ''}"
                  f"{'' if rerun else ', rerun: never'}}}\n")


def whole(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not positive")
    return value


def main():
    parser = argparse.ArgumentParser(description="Writes a modelled profile to stdout.")
    parser.add_argument("model", choices=[*GPT2, *RESNET, "unet", "chain"])
    parser.add_argument("--batch", default=[1], metavar="N,N,...",
                        type=lambda text: [whole(n) for n in text.split(",")],
                        help="batch sizes, ascending")
    parser.add_argument("--gpu", choices=GPUS, default="v100")
    parser.add_argument("--length", type=whole, default=1024, help="tokens per sample (gpt2)")
    parser.add_argument("--image", type=whole, help="pixels per side (resnet: 224, unet: 512)")
    parser.add_argument("--layers", type=whole, default=100, help="depth (chain)")
    parser.add_argument("--width", type=whole, default=1024, help="features (chain)")
    parser.add_argument("--schema", metavar="PLACE", default="../schemas/profile.v1.schema.json",
                        help="where an editor of the profile finds the schema (default: %(default)s; '': say nothing)")
    options = parser.parse_args()
    if options.image and options.image % 32 != 0:
        parser.error("--image must be a multiple of 32")
    if options.batch != sorted(set(options.batch)):
        parser.error("--batch must ascend")
    write(options, sys.stdout)


if __name__ == "__main__":
    main()
