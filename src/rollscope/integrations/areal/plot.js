"use strict";
// Draws one page of sessions; all text goes onto the canvas or in as text nodes.
const data = JSON.parse(document.getElementById("data").textContent);
const COLOURS = { generate: "#2563eb", reward: "#dc2626", toolcall: "#f59e0b", total: "#7c3aed" };
const IDLE = "#d1d5db";
const RANKS = ["#2563eb", "#059669", "#d97706", "#7c3aed", "#db2777", "#0891b2", "#4d7c0f"];
const body = document.body;
body.style.cssText = "font: 14px sans-serif; margin: 16px";

function add(tag, text) {
  const element = body.appendChild(document.createElement(tag));
  if (text) element.textContent = text;
  return element;
}

function canvas(height) {
  const element = add("canvas");
  const width = Math.max(window.innerWidth - 48, 320);
  element.width = width * devicePixelRatio;
  element.height = height * devicePixelRatio;
  element.style.cssText = `width:${width}px;height:${height}px;display:block`;
  const pen = element.getContext("2d");
  pen.scale(devicePixelRatio, devicePixelRatio);
  pen.font = "12px sans-serif";
  return { element, pen, width, height };
}

function axis(pen, x0, x1, y, from, to) {
  pen.fillStyle = "#333";
  for (let i = 0; i <= 5; i++) {
    const value = from + ((to - from) * i) / 5;
    pen.fillText(value.toPrecision(3), x0 + ((x1 - x0) * i) / 5 - 10, y + 14);
  }
}

function histogram(title, values, colour) {
  const known = values.filter((value) => value !== null);
  add("h3", `${title}: ${known.length} sessions`);
  if (!known.length) return;
  const { pen, width } = canvas(140);
  const most = known.reduce((a, b) => Math.max(a, b), 0) || 1;
  const bins = new Array(Math.min(80, Math.max(8, Math.ceil(Math.sqrt(known.length))))).fill(0);
  for (const value of known) bins[Math.min(bins.length - 1, Math.floor((value / most) * bins.length))]++;
  const highest = Math.max(...bins);
  const each = (width - 40) / bins.length;
  pen.fillStyle = colour;
  bins.forEach((n, i) => pen.fillRect(20 + i * each, 120 - (n / highest) * 110, each - 1, (n / highest) * 110));
  axis(pen, 20, width - 20, 120, 0, most);
}

function distributions(rows, suffix) {
  histogram(`total, s${suffix}`, rows.map((row) => row.total), COLOURS.total);
  for (const phase of ["generate", "reward", "toolcall"])
    histogram(`${phase}, s${suffix}`, rows.map((row) => row.sums[phase]), COLOURS[phase]);
}

function counts(rows) {
  const found = new Map();
  for (const row of rows) {
    const key = row.reason ? `${row.status} (${row.reason})` : row.status;
    found.set(key, (found.get(key) || 0) + 1);
  }
  add("p", [...found].map(([key, n]) => `${n} ${key}`).join(", "));
}

function latency() {
  const rows = data.rows.filter((row) => row.total !== null);
  if (!rows.length) return void add("p", "No session has its verdict yet.");
  const { pen, width, height } = canvas(520);
  const right = rows.reduce((a, row) => Math.max(a, row.final), 0) || 1;
  const top = rows.reduce((a, row) => Math.max(a, row.total), 0) || 1;
  const x = (s) => 40 + (s / right) * (width - 60);
  const y = (s) => height - 30 - (s / top) * (height - 60);
  const ranks = [...new Set(rows.map((row) => row.who))].sort();
  for (const row of rows) {
    pen.fillStyle = RANKS[ranks.indexOf(row.who) % RANKS.length];
    pen.fillRect(x(row.final) - 2, y(row.total) - 2, 4, 4);
  }
  ranks.forEach((who, i) => {
    pen.fillStyle = RANKS[i % RANKS.length];
    pen.fillText(who, 50 + i * 110, 14);
  });
  data.steps.forEach((end, i) => {
    pen.strokeStyle = "#999";
    pen.strokeRect(x(end), 20, 0, height - 50);
    const inside = rows.filter((row) => row.final <= end && (i === 0 || row.final > data.steps[i - 1]));
    if (!inside.length) return;
    const totals = inside.map((row) => row.total).sort((a, b) => a - b);
    const p95 = totals[Math.ceil(totals.length * 0.95) - 1];
    pen.fillStyle = "#111";
    pen.save();
    pen.translate(x(end), y(p95));
    pen.rotate(Math.PI / 4);
    pen.fillRect(-5, -5, 10, 10);
    pen.restore();
  });
  axis(pen, 40, width - 20, height - 26, 0, right);
}

function lifecycle() {
  const high = 8;
  const shown = canvas(600);
  const end = data.rows.reduce((a, row) => {
    const times = Object.values(row.phases).flat(2).filter((value) => value !== null);
    return times.reduce((b, value) => Math.max(b, value), Math.max(a, row.final || row.start));
  }, 0) || 1;
  const told = add("p", "Scroll to move through the sessions; point at one to read about it.");
  let first = 0;
  const visible = Math.floor(570 / high);
  const draw = () => {
    const { pen, width } = shown;
    const x = (s) => 10 + (s / end) * (width - 30);
    pen.clearRect(0, 0, width, 600);
    data.rows.slice(first, first + visible).forEach((row, i) => {
      const over = row.final === null ? end : row.final;
      pen.fillStyle = IDLE;
      pen.fillRect(x(row.start), i * high, Math.max(x(over) - x(row.start), 1), high - 2);
      for (const [name, parts] of Object.entries(row.phases)) {
        pen.fillStyle = COLOURS[name] || "#059669";
        for (const [from, to] of parts)
          pen.fillRect(x(from), i * high, Math.max(x(to === null ? end : to) - x(from), 1), high - 2);
      }
    });
    axis(pen, 10, width - 20, 572, 0, end);
  };
  shown.element.addEventListener("wheel", (event) => {
    event.preventDefault();
    first = Math.min(Math.max(first + Math.sign(event.deltaY) * 5, 0), Math.max(data.rows.length - visible, 0));
    draw();
  });
  shown.element.addEventListener("mousemove", (event) => {
    const row = data.rows[first + Math.floor(event.offsetY / high)];
    if (row) told.textContent = `${row.id}: ${row.status} ${row.reason}, ${row.total === null ? "open" : row.total.toFixed(3) + " s"}`;
  });
  draw();
}

add("h2", data.title);
counts(data.rows);
if (data.kind === "overall") distributions(data.rows, "");
else if (data.kind === "latency") latency();
else if (data.kind === "lifecycle") lifecycle();
else {
  const steps = [...new Set(data.rows.map((row) => row.step))].filter((step) => step !== null).sort((a, b) => a - b);
  if (!steps.length) add("p", "No steps can be told.");
  for (const step of steps) {
    add("h2", `step ${step}`);
    const rows = data.rows.filter((row) => row.step === step);
    counts(rows);
    distributions(rows, `, step ${step}`);
  }
}
