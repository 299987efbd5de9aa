# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages of `atp-plan report`: report_page.py ATP-PLAN PROFILES [--browser] [--keep DIRECTORY].

Reads pages as a strict parser does: every element closed, names only as text, nothing that leads out
of the file, the same bytes twice. With --browser they run in Chromium too (exit code 77 where there
is none): no message on its console, the pictures answer to keys, the table to its filter."""
import argparse
import html.parser
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

VOID = {"meta", "link", "input", "br", "hr", "img"}
HOSTILE = [
    "<script>alert(1)</script>", "</script><b>", "\"quoted\" 'too'", "a&amp;b", "x onload=alert(1)", "--><!--",
    "\u202edrawkcab", "h0.attn.\u00fc\u4e2d\U0001f600", "]]>", "\\u003c\\",
]
SIZE_MOST = 5_000_000


def profile(blocks, names=lambda kind, i: f"{kind}{i}", model="chain"):
    """A chain: forward step i reads x[i] and writes x[i+1]; backward reads both and a gradient."""
    quote = json.dumps
    lines = [
        "atp_profile: 1", f"model: {quote(model, ensure_ascii=False)}",
        "device: {name: \"<i>device</i>\", memory_bytes: 64000000000, d2h_bytes_per_second: 12000000000, "
        "h2d_bytes_per_second: 12000000000}", "batch_size: 1", "resident_bytes: 1000000", "tensors:",
    ]
    x = [quote(names("x", i), ensure_ascii=False) for i in range(blocks + 1)]
    g = [quote(names("g", i), ensure_ascii=False) for i in range(blocks + 1)]
    step = [quote(names("s", i), ensure_ascii=False) for i in range(blocks)]
    for i in range(blocks + 1):
        lines.append(f"  - {{name: {x[i]}, bytes: {1000000 + i % 7 * 300000}}}")
    lines += [f"  - {{name: {g[i]}, bytes: 1000000}}" for i in range(blocks + 1)]
    lines.append("steps:")
    for i in range(blocks):
        rerun = ", rerun: never" if i % 5 == 3 else ""
        lines.append(f"  - {{name: {step[i]}, phase: forward, time_us: {50 + i % 11 * 20}.5, "
                     f"reads: [{x[i]}], writes: [{x[i + 1]}]{rerun}}}")
    for i in reversed(range(blocks)):
        reads = [x[i], x[i + 1]] + ([g[i + 1]] if i + 1 < blocks else [])
        lines.append(f"  - {{name: {step[i]}, phase: backward, time_us: 130, workspace_bytes: {i % 3 * 200000}, "
                     f"reads: [{', '.join(reads)}], writes: [{g[i]}]}}")
    lines.append("  - {name: update, phase: update, time_us: 100, reads: [], writes: []}")
    return "\n".join(lines).replace(f"\n  - {{name: {g[blocks]}, bytes: 1000000}}", "") + "\n"


def at_two_sizes(text):
    """The same profile measured at batch sizes 1 and 2: sizes double, a step of t us then takes 1.5 t."""
    text = text.replace("batch_size: 1\n", "batch_sizes: [1, 2]\n")
    text = re.sub(r"(?<!resident_)bytes: (\d+)\}", lambda m: f"bytes: [{m[1]}, {2 * int(m[1])}]}}", text)
    return re.sub(r"time_us: ([\d.]+)", lambda m: f"time_us: [{m[1]}, {1.5 * float(m[1])}]", text)


class Page(html.parser.HTMLParser):
    """Balance of the elements, and all that a browser might fetch, follow or run."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.scripts, self.handlers = [], set(), 0, []
        self.links, self.references, self.text, self.numbers = [], [], [], ""
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self.note(tag, attrs)

    def handle_startendtag(self, tag, attrs):
        self.note(tag, attrs)

    def note(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute twice in {tag}: {names}"
        self.scripts += tag == "script"
        for name, value in attrs:
            assert value is not None, f"{tag}: {name} has no value"
            if name == "id":
                assert value not in self.ids, f"id twice: {value}"
                self.ids.add(value)
            if name.startswith("on"):
                self.handlers.append((tag, name))
            if name in ("href", "src", "action", "data", "poster", "srcset", "xlink:href"):
                self.links.append(value)
            if name in ("aria-labelledby", "aria-describedby", "for"):
                self.references.append(value)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == "script" and not self.numbers:
            self.numbers = data
        if not self.open or self.open[-1] not in ("script", "style"):
            self.text.append(data)


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True)
    assert done.returncode == 0, f"{command} gave {done.returncode}: {done.stderr.decode(errors='replace')}"
    return done


def make(atp_plan, folder, name, source, budget, *options):
    """The page of a plan for a profile: its path and text."""
    source_path = source
    if isinstance(source, str):
        source_path = folder / f"{name}.yaml"
        source_path.write_text(source, encoding="utf-8")
    plan, page, again = (folder / f"{name}.{end}" for end in ("plan.yaml", "html", "again.html"))
    run(atp_plan, "solve", source_path, "--budget", budget, "-o", plan, "-q", *options)
    for path in (page, again):
        run(atp_plan, "report", plan, "--profile", source_path, "-o", path)
    text = page.read_bytes()
    assert text == again.read_bytes(), f"{name}: another page the second time"
    assert text == run(atp_plan, "report", plan, "--profile", source_path).stdout, f"{name}: stdout differs"
    again.unlink()
    return page, text.decode("utf-8")


def check_page(name, text):
    page = Page(text)
    assert page.scripts == 2 and not page.handlers, f"{name}: {page.scripts} scripts, {page.handlers}"
    for link in page.links:
        assert link.startswith("#") or link == "data:,", f"{name} leads to {link}"
        assert not link.startswith("#") or link[1:] in page.ids, f"{name}: nothing is at {link}"
    for reference in page.references:
        assert reference in page.ids, f"{name}: nothing has the id {reference}"
    assert not re.search(r"(https?:)?//[a-z]|@import|url\((?!#)", text.split('id="numbers"')[0]), f"{name}: a URL"
    for heading in ("Memory over the iteration", "The three engines", "The arena", "Beside simple policies", "Tensors"):
        assert heading in page.text, f"{name} has no {heading}"
    assert len(text.encode()) < SIZE_MOST, f"{name}: {len(text)} characters"
    return page


def check_numbers(name, page):
    """The data of the script must agree with itself and with the header."""
    numbers = json.loads(page.numbers)
    spent = sum(numbers["compute"][2::5])
    assert spent == numbers["iteration_ns"], f"{name}: compute ends at {spent}"
    level = max(numbers["compute"][3::5])
    assert level == numbers["resident_bytes"] + numbers["peak_bytes"], f"{name}: the memory peaks at {level}"
    for i in range(0, len(numbers["places"]), 6):
        _, _, start, length, offset, size = numbers["places"][i:i + 6]
        assert start + length <= numbers["iteration_ns"] and offset + size <= numbers["arena_bytes"], f"{name}: {i}"
    stalls = sum(n for kind, n in zip(numbers["compute"][0::5], numbers["compute"][2::5]) if kind == 4)
    assert stalls == numbers["stall_ns"], f"{name}: stalls add up to {stalls}"
    return numbers


def check_curve(name, page, numbers):
    """The rate that the curve names is the plan's, and the plan's place on it is not above the bound's."""
    told = "".join(page.text)
    rate, bound = (float(re.search(words, told)[1]) for words in (
        r"trains ([\d.]+) samples a second", r"can exceed ([\d.]+), the model"))
    assert abs(rate - 2e9 / numbers["iteration_ns"]) < 0.01, f"{name}: {rate} samples a second"
    assert rate <= bound + 0.01, f"{name}: {rate} is above {bound}"
    assert "keep everything, while it fits" in told, name


def browse(browser, folder, page, script):
    """What the page looks like after `script` ran in it, and how long the browser took."""
    probe = folder / "probe.html"
    probe.write_text(page.read_text(encoding="utf-8").replace(
        "</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
             f"--user-data-dir={home}", "--window-size=1200,900", "--dump-dom", f"file://{probe}"],
            capture_output=True, timeout=240)
    took = time.monotonic() - start
    words = done.stderr.decode(errors="replace")
    assert done.returncode == 0, words
    assert ":CONSOLE" not in words, [line for line in words.splitlines() if ":CONSOLE" in line]
    found = re.search(r'data-probe="([^"]*)"', done.stdout.decode("utf-8"))
    assert found, f"{page.name}: the probe did not run"
    return json.loads(found.group(1).replace("&quot;", '"').replace("&amp;", "&")), took


PROBE = """
var opened = performance.now();
var key = function (id, name) {
  var canvas = document.getElementById(id + "-canvas");
  canvas.focus();
  canvas.dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true}));
  return document.getElementById(id + "-readout").textContent;
};
var shown = function () {
  return Array.prototype.filter.call(document.querySelectorAll("#tensors tbody tr"), function (row) { return !row.hidden; });
};
var out = {rows: shown().length, memory: key("memory", "End"), engines: key("engines", "Home"), arena: key("arena", "Home")};
out.stall = key("engines", "s");
var begin = performance.now();
document.querySelector("#tensors thead button[data-column='2']").click();
out.largest = shown()[0].cells[0].textContent;
document.getElementById("filter-name").value = out.largest;
document.querySelector(".filter").dispatchEvent(new Event("input"));
out.filtered = shown().length;
document.body.offsetHeight;
out.table_ms = Math.round(performance.now() - begin);
out.wide = document.documentElement.scrollWidth > window.innerWidth;
out.bold = document.querySelectorAll("b, i:not([class])").length;
out.open_ms = Math.round(opened);
document.body.setAttribute("data-probe", JSON.stringify(out));
"""


def check_browser(browser, folder, page, text):
    numbers = json.loads(Page(text).numbers)
    out, took = browse(browser, folder, page, PROBE)
    print(f"{page.name}: {len(text.encode())} bytes, ready in {out['open_ms']} ms, table in {out['table_ms']} ms, "
          f"{took:.1f} s with the browser's start")
    sizes = dict(zip(numbers["rows"][0::6], numbers["rows"][1::6]))
    largest = max(sizes.values())
    assert sizes[numbers["tensors"].index(out["largest"])] == largest, out
    assert 0 < out["rows"] <= 100 and 0 < out["filtered"] <= out["rows"], out
    assert " on the device" in out["memory"] and "update" in out["memory"], out
    assert re.match(r"0\.000 us: ", out["engines"]) and " at offset " in out["arena"], out
    assert ("stall for" in out["stall"]) == (numbers["stall_ns"] > 0), out
    assert not out["wide"] and out["bold"] == 0, out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("atp_plan")
    parser.add_argument("profiles", type=pathlib.Path)
    parser.add_argument("--browser", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path, help="leave the pages here")
    args = parser.parse_args()
    browser = shutil.which("chromium") or shutil.which("google-chrome") if args.browser else None
    if args.browser and browser is None:
        print("skipped: there is no chromium")
        return 77
    hostile = lambda kind, i: f"{kind}{i} {HOSTILE[i % len(HOSTILE)]}"
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or pathlib.Path(scratch)
        pages = {
            "tiny": make(args.atp_plan, folder, "tiny", args.profiles / "tiny.yaml", "75%"),
            "hostile": make(args.atp_plan, folder, "hostile", profile(24, hostile, HOSTILE[0]), "60%"),
            "batches": make(args.atp_plan, folder, "batches", at_two_sizes(profile(24)), "75%", "--batch", "2"),
            "large": make(args.atp_plan, folder, "large", profile(2500), "100%"),
        }
        for name, (path, text) in pages.items():
            page = check_page(name, text)
            numbers = check_numbers(name, page)
            assert ("Throughput over batch sizes" in page.text) == (name == "batches"), name
            if name == "batches":
                check_curve(name, page, numbers)
            if browser is not None:
                check_browser(browser, folder, path, text)
            elif name == "hostile":
                # Every name stands in the table as its profile spells it.
                words = set(Page(text).text)
                for i in range(24):
                    assert hostile("x", i) in words, hostile("x", i)
                assert hostile("x", 0) in numbers["tensors"] and hostile("s", 3) in numbers["steps"]
    print("all pages are as they should be")
    return 0


if __name__ == "__main__":
    sys.exit(main())
