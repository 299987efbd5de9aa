/* SPDX-License-Identifier: GPL-3.0-or-later
 * Readouts of the pictures for pointer and keyboard; the table of tensors, sorted and filtered. The
 * page holds all numbers and pictures without it. Names reach the page as text, never as markup. */
(function () {
  "use strict";
  var $ = function (id) { return document.getElementById(id); };
  var numbers = JSON.parse($("numbers").textContent);
  var total = numbers.iteration_ns || 1;
  var KINDS = ["forward", "backward", "update", "rerun", "stall for"];
  var DECISIONS = ["keep", "swap", "recompute"];
  document.body.classList.remove("no-script");

  function scaled(value, units, decimals, limit) {
    var unit = 0;
    while (value >= limit && unit + 1 < units.length) { value /= 1000; unit++; }
    return value.toFixed(decimals) + " " + units[unit];
  }
  function bytes(n) { return n < 1000 ? n + " B" : scaled(n / 1000, ["KB", "MB", "GB", "TB", "PB", "EB"], 2, 999.995); }
  function time(ns) { return scaled(ns / 1000, ["us", "ms", "s"], 3, 999.9995); }

  /* Flat arrays of `width` numbers each. `starts` holds where each mark of compute begins. */
  var compute = numbers.compute, marks = compute.length / 5, starts = [];
  for (var i = 0, at = 0; i < marks; i++) { starts.push(at); at += compute[5 * i + 2]; }

  /* The last of the marks that begin at or before `ns` and last. */
  function markAt(ns) {
    var low = 0, high = marks;
    while (high - low > 1) {
      var middle = (low + high) >> 1;
      if (starts[middle] <= ns) { low = middle; } else { high = middle; }
    }
    return low;
  }
  function copyAt(list, ns) {
    for (var i = 0; i < list.length; i += 3) {
      if (list[i + 1] <= ns && ns < list[i + 1] + list[i + 2]) { return numbers.tensors[list[i]]; }
    }
    return null;
  }
  function describeStep(mark) {
    var kind = compute[5 * mark], id = compute[5 * mark + 1];
    return KINDS[kind] + " " + (kind === 4 ? numbers.tensors : numbers.steps)[id];
  }

  var charts = {};
  Array.prototype.forEach.call(document.querySelectorAll(".canvas[data-chart]"), function (canvas) {
    var cursor = document.createElement("div");
    cursor.className = "cursor";
    cursor.hidden = true;
    canvas.appendChild(cursor);
    charts[canvas.dataset.chart] = { canvas: canvas, cursor: cursor, at: -1, readout: $(canvas.dataset.chart + "-readout") };
  });

  function moveCursors(ns) {
    Object.keys(charts).forEach(function (name) {
      charts[name].cursor.hidden = ns === null;
      charts[name].cursor.style.left = 100 * ns / total + "%";
    });
  }
  /* Assistive technology hears a readout when it changes: only that of the picture in use. */
  function say(chart, text) {
    chart.readout.classList.add("told");
    if (chart.readout.textContent !== text) { chart.readout.textContent = text; }
  }

  function showMark(chart, mark, ns) {
    if (marks === 0) { return; }
    chart.at = mark;
    var text = time(ns) + ": " + describeStep(mark) + ", " + time(compute[5 * mark + 2]);
    if (chart === charts.memory) {
      text = time(ns) + ": " + bytes(compute[5 * mark + 3]) + " on the device, " + bytes(compute[5 * mark + 4]) +
        " with everything kept; " + describeStep(mark);
    } else {
      var out = copyAt(numbers.out, ns), back = copyAt(numbers["in"], ns);
      text += (out === null ? "" : "; copies out " + out) + (back === null ? "" : "; copies in " + back);
    }
    moveCursors(ns);
    say(chart, text);
  }

  var places = numbers.places, placeCount = places.length / 6;
  function place(i) {
    var p = places.slice(6 * i, 6 * i + 6);
    return { workspace: p[0] === 1, id: p[1], start: p[2], length: p[3], offset: p[4], bytes: p[5] };
  }
  var chosen = document.querySelector(".chosen");
  function showPlace(i, ns) {
    var chart = charts.arena, p = place(i), y = 1000 / numbers.arena_bytes, x = 4000 / total;
    chart.at = i;
    chosen.setAttribute("d", "M" + p.start * x + " " + (1000 - (p.offset + p.bytes) * y) + "h" + p.length * x +
      "v" + p.bytes * y + "h" + -p.length * x + "z");
    moveCursors(ns === undefined ? p.start : ns);
    say(chart, (p.workspace ? "workspace of " + numbers.steps[p.id] : numbers.tensors[p.id] + ", " +
      DECISIONS[numbers.decisions[p.id]]) + ": " + bytes(p.bytes) + " at offset " + bytes(p.offset) + ", from " +
      time(p.start) + " to " + time(p.start + p.length));
  }
  function placeAt(ns, offset) {
    for (var i = placeCount - 1; i >= 0; i--) {
      var start = places[6 * i + 2], low = places[6 * i + 4];
      if (start <= ns && ns <= start + places[6 * i + 3] && low <= offset && offset < low + places[6 * i + 5]) { return i; }
    }
    return -1;
  }
  function clear() { moveCursors(null); chosen.setAttribute("d", ""); }

  function step(chart, by) {
    var isArena = chart === charts.arena, count = isArena ? placeCount : marks;
    if (count === 0) { return; }
    var next = Math.min(Math.max(chart.at + by, 0), count - 1);
    if (isArena) { showPlace(next); } else { showMark(chart, next, starts[next]); }
  }
  function nextStall(chart) {
    for (var k = 1; k <= marks; k++) {
      var mark = (Math.max(chart.at, 0) + k) % marks;
      if (compute[5 * mark] === 4) { showMark(chart, mark, starts[mark]); return; }
    }
    say(chart, "There is no stall.");
  }

  Object.keys(charts).forEach(function (name) {
    var chart = charts[name], waiting = null;
    chart.canvas.addEventListener("pointermove", function (event) {
      var isQueued = waiting !== null;
      waiting = event;
      if (isQueued) { return; }
      requestAnimationFrame(function () {
        var box = chart.canvas.getBoundingClientRect(), event = waiting;
        waiting = null;
        var ns = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1) * total;
        if (name !== "arena") { showMark(chart, markAt(ns), ns); return; }
        var found = placeAt(ns, (1 - (event.clientY - box.top) / box.height) * numbers.arena_bytes);
        if (found >= 0) { showPlace(found, ns); return; }
        chosen.setAttribute("d", "");
        moveCursors(ns);
        say(chart, time(ns) + ": free");
      });
    });
    chart.canvas.addEventListener("pointerleave", function () { if (document.activeElement !== chart.canvas) { clear(); } });
    chart.canvas.addEventListener("focus", function () { if (chart.at < 0) { step(chart, 1); } });
    chart.canvas.addEventListener("blur", clear);
    chart.canvas.addEventListener("keydown", function (event) {
      var moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -Infinity, End: Infinity };
      if (event.ctrlKey || event.metaKey || event.altKey) { return; }
      if (event.key in moves) { step(chart, moves[event.key]); event.preventDefault(); }
      if ((event.key === "s" || event.key === "S") && name === "engines") { nextStall(chart); event.preventDefault(); }
      if (event.key === "Escape") { clear(); }
    });
  });

  /* The table. `order` holds the rows as sorted. */
  var SHOWN = 100, body = document.querySelector("#tensors tbody");
  var rows = Array.prototype.slice.call(body.rows), order = rows.slice(), showsAll = rows.length <= SHOWN;
  var names = rows.map(function (row) { return row.cells[0].textContent; });
  var lower = names.map(function (name) { return name.toLowerCase(); });
  function number(row, column) {
    var i = +row.dataset.row;
    return column === 1 ? numbers.decisions[numbers.rows[6 * i]] : numbers.rows[6 * i + column - 1];
  }
  function apply() {
    var word = $("filter-name").value.toLowerCase(), allowed = {}, found = 0, shown = 0;
    Array.prototype.forEach.call(document.querySelectorAll("input[name=decision]"), function (box) { allowed[box.value] = box.checked; });
    order.forEach(function (row) {
      var i = +row.dataset.row;
      var fits = allowed[number(row, 1)] && lower[i].indexOf(word) >= 0;
      found += fits ? 1 : 0;
      row.hidden = !fits || (!showsAll && found > SHOWN);
      shown += row.hidden ? 0 : 1;
    });
    $("shown").textContent = shown + " of " + numbers.tensors.length + " tensors shown.";
    $("more").hidden = shown === found;
  }
  function sortBy(button) {
    var column = +button.dataset.column, head = button.parentNode;
    var isDown = head.getAttribute("aria-sort") ? head.getAttribute("aria-sort") === "ascending" : column > 1;
    Array.prototype.forEach.call(document.querySelectorAll("#tensors [aria-sort]"), function (other) { other.removeAttribute("aria-sort"); });
    head.setAttribute("aria-sort", isDown ? "descending" : "ascending");
    order.sort(function (a, b) {
      var i = +a.dataset.row, j = +b.dataset.row;
      var by = column === 0 ? (names[i] < names[j] ? -1 : names[i] > names[j] ? 1 : 0) : number(a, column) - number(b, column);
      return (isDown ? -by : by) || i - j;
    });
    var sorted = document.createDocumentFragment();
    order.forEach(function (row) { sorted.appendChild(row); });
    body.appendChild(sorted);
    apply();
  }
  Array.prototype.forEach.call(document.querySelectorAll("#tensors thead button"), function (button) {
    button.addEventListener("click", function () { sortBy(button); });
  });
  document.querySelector(".filter").addEventListener("input", apply);
  document.querySelector(".filter").addEventListener("submit", function (event) { event.preventDefault(); });
  $("more").addEventListener("click", function () { showsAll = true; apply(); });
  apply();
}());
