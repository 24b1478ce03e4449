// The page: recordings are unpacked, the chart and tables drawn, and events listened to.
"use strict";
let chart, recordings = [], current = 0;
const faults = [];
window.addEventListener("error", event => faults.push(String(event.message)));
window.addEventListener("unhandledrejection", event => faults.push(String(event.reason)));

const setting = (name, value) => {
  try { return value === undefined ? localStorage.getItem(name) : localStorage.setItem(name, value); } catch { return null; }
};

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  document.documentElement.style.colorScheme = dark ? "dark" : "light";
  if (chart) chart.draw();
}

function legend() {
  const data = chart.data, state = data.at(chart.pinned);
  const used = chart.order.filter(c => data.used[c] || state[c]);
  $("#legend").replaceChildren(...used.map(c => make("button", { type: "button", "aria-pressed": String(!chart.hidden.has(c)), title: MEANINGS[data.meta.categories[c]] || "", onclick: () => {
    if (chart.hidden.has(c)) chart.hidden.delete(c); else chart.hidden.add(c);
    chart.draw();
    legend();
  } }, make("span", { class: "dot", style: { background: COLORS[data.meta.categories[c]] } }), words(data.meta.categories[c]),
    make("small", {}, bytes(state[c])))));
  if (chart.other) $("#legend").append(make("span", { class: "ghost" }, make("i", {}), `total of ${chart.other.meta.name}`,
    make("small", {}, `peak ${bytes(chart.other.peak)}`)));
  if (chart.selected) $("#legend").append(make("span", { class: "ghost", id: "selected" }, make("i", {}), chart.selected.label,
    make("small", {}, `${bytes(chart.selected.sums[chart.pinned + 1])} here, at most ${bytes(chart.selected.most)}`),
    make("button", { type: "button", "aria-label": "no longer draw it", onclick: () => choosePart(null) }, "×")));
}

// Have the chart show what a part holds; the same once more, or nothing: what it shows is taken away.
function choosePart(label, test) {
  const same = !label || chart.selected && chart.selected.label === label;
  chart.select(same ? null : label, test);
  if (same) findInIcicle($("#search").value = "");
  legend();
}

function search(event) {
  const wanted = event.target.value.trim().toLowerCase(), { data } = chart;
  const text = m => {
    const stack = data.makerStack[m] < 0 ? [] : data.meta.stacks[data.makerStack[m]].map(f => data.meta.frames[f]);
    return [data.meta.operators[data.makerOperator[m]], data.meta.modules[data.makerModule[m]],
      ...stack.map(([file, line, name]) => `${data.meta.files[file]}:${line} ${name}`)].join("\n").toLowerCase();
  };
  chart.select(wanted || null, m => text(m).includes(wanted));
  findInIcicle(wanted);
  legend();
}

function pin(moment) {
  chart.pinned = Math.max(-1, Math.min(chart.data.n - 1, moment));
  chart.drawOverlay();
  showMoment(chart.data, chart.pinned);
  legend();
  try { history.replaceState(null, "", chart.pinned === chart.data.peakAt ? location.pathname : `#moment=${chart.pinned}`); } catch { /* a page within a page */ }
}

function tip(found, x, y) {
  const box = $("#tip"), { data } = chart;
  box.hidden = !found;
  if (!found) return;
  const { moment, category, block } = found, state = data.at(moment), total = state.reduce((a, b) => a + b, 0), lines = [];
  const phase = PHASES[data.phase(moment)];
  if (category >= 0) {
    const name = data.meta.categories[category], dot = make("span", { class: "dot", style: { background: COLORS[name], marginRight: "6px" } });
    if (block >= 0) {
      const stack = data.stack(block);
      lines.push(make("div", {}, dot, make("b", {}, bytes(data.size(block))), ` ${words(name)}`));
      lines.push(make("div", { class: "what" }, [data.operator(block), data.module(block)].filter(Boolean).join(" in ") || "made before the recording"));
      if (stack.length) lines.push(frames(stack.slice(0, 5)));
      lines.push(make("div", { class: "what" }, `alive ${life(data, block)}`));
    }
    lines.push(make("div", { class: "what" }, `all ${words(name)}: ${bytes(state[category])}, ${share(state[category], total)}`));
  }
  lines.push(make("div", { class: lines.length ? "total" : "" }, make("b", {}, bytes(total)), ` at ${moment < 0 ? "the beginning" : duration(data.time[moment])}`,
    phase ? `, ${phase}` : "", ` · event ${count(moment + 1)} of ${count(data.n)}`));
  box.replaceChildren(...lines);
  const plot = $("#plot").getBoundingClientRect(), width = box.offsetWidth, tall = box.offsetHeight;
  const left = x + 18 + width > plot.width ? Math.max(0, x - 18 - width) : x + 18;
  box.style.transform = `translate(${left}px, ${Math.max(0, Math.min(y - 20, plot.height - tall))}px)`;
}

function hover(x, y) {
  chart.hover = x === null ? null : chart.under(x, y);
  chart.drawOverlay();
  tip(chart.hover, x, y);
}

// Pointers: one drags or presses, two pinch.
function pointers(canvas) {
  const down = new Map();
  let moved = 0, start = null;
  const spot = event => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  const grip = () => {
    const xs = [...down.values()].map(p => p[0]);
    start = { from: chart.from, to: chart.to, xs };
  };
  canvas.addEventListener("pointerdown", event => {
    try { canvas.setPointerCapture(event.pointerId); } catch { /* a pointer that a test made */ }
    down.set(event.pointerId, spot(event));
    moved = 0;
    grip();
  });
  canvas.addEventListener("pointermove", event => {
    const [x, y] = spot(event);
    if (!down.has(event.pointerId)) { if (event.pointerType !== "touch") hover(x, y); return; }
    const before = down.get(event.pointerId);
    moved += Math.abs(x - before[0]);
    down.set(event.pointerId, [x, y]);
    if (moved < 4) return;
    hover(null);
    drag([...down.values()].map(p => p[0]), start);
  });
  const up = event => {
    if (!down.delete(event.pointerId)) return;
    if (event.type === "pointerup" && moved < 4 && !down.size) {
      const found = chart.under(...spot(event));
      if (found) { hover(...spot(event)); pin(found.moment); }
    }
    if (down.size) grip();
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", event => { if (event.pointerType !== "touch") hover(null); });
}

function drag(xs, start) {
  const width = (start.to - start.from) / chart.inner, at = x => start.from + (x - LEFT) * width;
  if (xs.length === 1) {
    const by = at(xs[0]) - at(start.xs[0]);
    chart.view(start.from - by, start.to - by);
    return;
  }
  const [a, b] = [at(start.xs[0]), at(start.xs[1])], spread = (b - a) / ((xs[1] - xs[0]) || 1);
  const from = a - (xs[0] - LEFT) * spread;
  if (spread > 0) chart.view(from, from + chart.inner * spread);
}

function wheel(event) {
  event.preventDefault();
  const box = chart.canvas.getBoundingClientRect(), unit = event.deltaMode === 1 ? 16 : 1;
  if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) chart.pan(event.deltaX * unit / chart.inner);
  else chart.zoom(Math.exp(Math.max(-200, Math.min(200, event.deltaY * unit)) * 0.0025), chart.at(event.clientX - box.left));
  hover(event.clientX - box.left, event.clientY - box.top);
}

function toPeak() {
  const { data } = chart, at = chart.position(data.peakAt), least = chart.furthest() / 1000;
  const i = data.phases.findIndex(([from, to]) => data.peakAt >= from && data.peakAt < to), last = data.phases.length - 1;
  let [from, to] = [at - 5 * least, at + 5 * least];
  if (i >= 0) {  // the phase of the peak with those before and after it
    from = Math.min(chart.position(data.phases[Math.max(i - 1, 0)][0]), at - least);
    to = Math.max(chart.position(data.phases[Math.min(i + 1, last)][1]), at + least);
  }
  pin(data.peakAt);
  chart.view(from, to);
}

const KEYS = {
  "+": () => chart.zoom(0.6), "=": () => chart.zoom(0.6), "-": () => chart.zoom(1 / 0.6), ArrowLeft: () => chart.pan(-0.15),
  ArrowRight: () => chart.pan(0.15), ArrowUp: () => chart.zoom(0.6), ArrowDown: () => chart.zoom(1 / 0.6),
  Escape: () => { if (chart.selected) choosePart(null); else pin(chart.data.peakAt); },
  0: () => { chart.reset(); chart.draw(); }, Home: () => { chart.reset(); chart.draw(); }, p: toPeak,
  "[": () => pin(chart.pinned - 1), "]": () => pin(chart.pinned + 1), t: () => axis(axes()[(axes().indexOf(chart.axis) + 1) % axes().length]),
};

const axes = () => [...document.querySelectorAll("[data-axis]")].map(button => button.dataset.axis);

function axis(name) {
  chart.setAxis(name);
  document.querySelectorAll("[data-axis]").forEach(b => b.setAttribute("aria-pressed", String(b.dataset.axis === name)));
}

function mapPointers() {
  const go = event => {
    const box = chart.map.getBoundingClientRect(), whole = chart.furthest(), width = chart.to - chart.from;
    const at = (event.clientX - box.left - LEFT) / chart.inner * whole;
    chart.view(at - width / 2, at + width / 2);
  };
  chart.map.addEventListener("pointerdown", event => {
    try { chart.map.setPointerCapture(event.pointerId); } catch { /* a pointer that a test made */ }
    go(event);
  });
  chart.map.addEventListener("pointermove", event => { if (event.buttons) go(event); });
}

function choose(number) {
  current = number;
  chart.mapped = null;
  opened = [];
  chart.use(recordings[number], recordings[number ? 0 : 1] || null);  // beside the first; that beside the second
  document.querySelectorAll("#datasets button").forEach((b, i) => b.setAttribute("aria-pressed", String(i === number)));
  chart.draw();
  pin(chart.pinned);
}

function listen() {
  pointers(chart.canvas);
  mapPointers();
  chart.canvas.addEventListener("wheel", wheel, { passive: false });
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.key !== "Escape" && /input|select|textarea/i.test(event.target.tagName)) return;
    if (!Object.hasOwn(KEYS, event.key) || event.key.startsWith("Arrow") && document.activeElement !== chart.canvas) return;
    event.preventDefault();
    hover(null);
    KEYS[event.key]();
  });
  document.querySelectorAll("[data-axis]").forEach(b => b.addEventListener("click", () => axis(b.dataset.axis)));
  const zooms = { in: () => chart.zoom(0.5), out: () => chart.zoom(2), all: KEYS[0], peak: toPeak };
  document.querySelectorAll("[data-zoom]").forEach(b => b.addEventListener("click", () => zooms[b.dataset.zoom]()));
  $("#topeak").addEventListener("click", () => { pin(chart.data.peakAt); });
  $("#theme").addEventListener("click", () => {
    const dark = document.documentElement.dataset.theme !== "dark";
    setting("rushlight-theme", dark ? "dark" : "light");
    setTheme(dark);
  });
  $("#units").addEventListener("click", () => {
    binary = !binary;
    $("#units").textContent = binary ? "GiB" : "GB";
    document.querySelectorAll("[data-bytes]").forEach(node => { node.textContent = bytes(Number(node.dataset.bytes)); });
    chart.draw();
    pin(chart.pinned);
  });
  $("#search").addEventListener("input", search);
  new ResizeObserver(() => chart.draw()).observe($("#plot"));
}

function datasets() {
  if (recordings.length < 2) { $("#datasets").remove(); return; }
  $("#datasets").append(...recordings.map((data, i) => make("button", { type: "button", "aria-pressed": String(i === current),
    onclick: () => choose(i) }, data.meta.name)));
}

async function begin() {
  const wanted = new URLSearchParams(location.hash.slice(1)), dark = matchMedia("(prefers-color-scheme: dark)");
  setTheme((wanted.get("theme") || setting("rushlight-theme") || (dark.matches ? "dark" : "light")) === "dark");
  if (typeof DecompressionStream === "undefined") {
    $("#wait").textContent = "This browser is too old for the timeline: it needs Chrome 80, Firefox 113 or Safari 16.4.";
    return;
  }
  for (const node of document.querySelectorAll("script[data-recording]")) {
    const data = new Data(JSON.parse(document.getElementById(node.dataset.recording).textContent), await unpack(node.textContent));
    data.used = new Uint8Array(data.categories);
    for (let b = 0; b < data.blocks; b++) data.used[data.category[b]] = 1;
    recordings.push(data);
  }
  $("#wait").remove();
  chart = new Chart(recordings[0], recordings[1]);
  if (recordings.some(data => data.begun.length < 3)) $("[data-axis=steps]").remove();
  else if (recordings.length > 1) axis("steps");  // by time the faster of two would run ahead
  datasets();
  listen();
  chart.draw();
  const moment = parseInt(wanted.get("moment"), 10);
  pin(Number.isNaN(moment) ? chart.pinned : moment);
  window.__rushlight = { chart, recordings, pin, hover, choose, axis, faults, ready: performance.now() };
  document.documentElement.dataset.ready = "yes";
}

begin().catch(error => {
  faults.push(String(error));
  $("#wait").textContent = `The recording in this page cannot be read: ${error}`;
});
