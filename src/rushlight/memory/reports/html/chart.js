// The timeline: stacked areas by category, drawn column by column, each at its moment of most bytes.
"use strict";
const LEFT = 66, TOP = 26, BOTTOM = 22, RIGHT = 10;
// From the floor up: what stays longest lies lowest.
const ORDER = ["parameter", "optimizer_state", "input", "gradient", "activation", "autograd_detail", "temporary", "unknown"];
const COLORS = { parameter: "#0072b2", optimizer_state: "#009e73", input: "#56b4e9", gradient: "#d55e00", activation: "#e69f00",
                 autograd_detail: "#b8a90f", temporary: "#cc79a7", unknown: "#8c959e" };
const PHASES = ["", "forward", "backward", "optimizer"];
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

class Chart {
  constructor(data, other) {
    this.canvas = $("#chart");
    this.overlay = $("#overlay");
    this.map = $("#map");
    this.axis = "time";
    this.hidden = new Set();
    this.hover = null;
    this.use(data, other);
  }

  use(data, other) {
    this.data = data;
    this.other = other;
    this.order = ORDER.map(name => data.meta.categories.indexOf(name)).filter(c => c >= 0);
    this.pinned = data.peakAt;
    this.selected = null;
    this.hover = null;
    this.reset();
  }

  // Positions: microseconds, events or steps, from the beginning -------------------------------------------
  length(data = this.data) {
    return this.axis === "time" ? Math.max(data.duration, 1) : this.axis === "steps" ? data.begun.length - 1 + SETUP : data.n + 1;
  }
  place(time, data = this.data) { return this.axis === "steps" ? data.stepAt(time) : time; }
  position(moment, data = this.data) {
    if (this.axis === "events") return moment + 1;
    return this.place(moment < 0 ? 0 : moment >= data.n ? data.duration : data.time[moment], data);
  }
  moment(position, data = this.data) {  // the last event at or before a position
    if (this.axis === "events") return Math.max(-1, Math.min(data.n - 1, Math.floor(position) - 1));
    if (this.axis === "steps") position = data.timeOf(position);
    let low = 0, high = data.n;
    while (low < high) {
      const middle = low + high >> 1;
      if (data.time[middle] <= position) low = middle + 1; else high = middle;
    }
    return low - 1;
  }
  x(position) { return LEFT + (position - this.from) / (this.to - this.from) * this.inner; }
  at(x) { return this.from + (x - LEFT) / this.inner * (this.to - this.from); }
  y(bytes) { return TOP + (1 - bytes / this.top) * (this.height - TOP - BOTTOM); }
  bytesAt(y) { return (1 - (y - TOP) / (this.height - TOP - BOTTOM)) * this.top; }

  reset() { this.from = 0; this.to = this.furthest(); }
  furthest() { return Math.max(this.length(), this.other ? this.length(this.other) : 0); }
  view(from, to) {
    const whole = this.furthest(), least = { events: 4, steps: 0.001, time: Math.min(whole, 2) }[this.axis];
    const width = Math.min(whole, Math.max(least, to - from));
    this.from = Math.max(0, Math.min(whole - width, from));
    this.to = this.from + width;
    this.draw();
  }
  zoom(factor, center = (this.from + this.to) / 2) {
    this.view(center - (center - this.from) * factor, center + (this.to - center) * factor);
  }
  pan(share) { const by = (this.to - this.from) * share; this.view(this.from + by, this.to + by); }
  setAxis(axis) {
    const ends = [this.moment(this.from), this.moment(this.to)], all = this.to - this.from >= this.furthest() * 0.999;
    this.axis = axis;
    if (all) this.reset(); else [this.from, this.to] = [this.position(ends[0]), this.position(ends[1])];
    this.hover = null;
    this.view(this.from, this.to);
  }

  // Drawing ----------------------------------------------------------------------------------------------
  fit(canvas) {
    const ratio = Math.min(window.devicePixelRatio || 1, 2), box = canvas.getBoundingClientRect();
    const [width, height] = [Math.max(box.width, 50), Math.max(box.height, 20)];
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const g = canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, height);
    return [g, width, height, ratio];
  }

  draw() {
    const [g, width, height, ratio] = this.fit(this.canvas);
    Object.assign(this, { width, height, ratio, inner: width - LEFT - RIGHT });
    if (this.inner < 1) return;  // a page that is being folded
    this.columns = this.sample(this.data, Math.ceil(this.inner * ratio));
    this.ghost = this.other && this.sample(this.other, Math.ceil(this.inner));
    this.top = this.ceiling() * 1.06 || 1;
    this.drawPhases(g);
    this.drawGrid(g);
    g.save();
    g.beginPath();
    g.rect(LEFT, TOP - 2, this.inner, height - TOP - BOTTOM + 2);
    g.clip();
    this.drawAreas(g);
    if (this.ghost) this.drawGhost(g);
    if (this.selected) this.drawSelected(g);
    g.restore();
    this.drawMarks(g);
    this.drawPeak(g);
    this.drawOverlay();
    this.drawMap();
  }

  drawMarks(g) {  // the user's own, as flags at the foot, where they do not run into one another
    g.font = "11px system-ui, sans-serif";
    g.textBaseline = "bottom";
    g.textAlign = "left";
    let edge = -Infinity;
    for (const [event, text, time] of this.data.meta.marks) {
      const x = this.x(this.axis === "events" ? this.position(event) : this.place(time)), y = this.height - BOTTOM;
      if (x < LEFT - 1 || x > this.width - RIGHT || x < edge + 8) continue;
      const wide = g.measureText(text).width;
      g.fillStyle = "rgb(0 0 0 / 55%)";
      g.fillRect(x, y - 17, Math.min(wide + 10, this.width - RIGHT - x), 17);
      g.fillStyle = "#fff";
      if (x + wide + 10 < this.width - RIGHT) g.fillText(text, x + 5, y - 2);
      g.fillRect(x, TOP, 1, y - TOP);
      edge = x + wide + 10;
    }
  }

  ceiling() { return Math.max(this.visibleMost(this.columns), this.ghost ? Math.max(...this.ghost.most) : 0); }
  visibleMost(columns) {
    if (!this.hidden.size) return Math.max(...columns.most);
    let most = 0;
    for (let i = 0; i < columns.count; i++) {
      let sum = 0;
      for (const c of this.order) if (!this.hidden.has(c)) sum += columns.state[i * columns.categories + c];
      most = Math.max(most, sum);
    }
    return most;
  }

  // For each of so many columns: the moment of most bytes, its bytes by category, and the least bytes.
  sample(data, count) {
    const C = data.categories, state = new Float64Array(count * C), one = new Float64Array(C);
    const best = new Int32Array(count), most = new Float64Array(count), least = new Float64Array(count);
    const found = {}, width = (this.to - this.from) / count, end = this.length(data);
    let last = this.moment(this.from, data);
    for (let i = 0; i < count; i++) {
      if (this.from + i * width > end) { best[i] = -2; continue; }
      const next = this.moment(this.from + (i + 1) * width, data);
      if (next > last) {
        data.extremes(last + 1, next + 1, found);
        best[i] = found.best; least[i] = found.least; most[i] = found.most;
        data.at(found.best, one);
      } else if (i === 0 || best[i - 1] !== last) {
        best[i] = last;
        data.at(last, one);
        most[i] = least[i] = one.reduce((a, b) => a + b, 0);
      } else {
        best[i] = last; most[i] = most[i - 1]; least[i] = most[i];
      }
      if (i === 0 && data.peakAt === -1 && this.from === 0) {  // nothing is ever above the beginning
        best[0] = -1; data.at(-1, one); most[0] = data.peak;
      }
      state.set(one, i * C);
      last = next;
    }
    return { count, categories: C, state, best, most, least };
  }

  drawGrid(g) {
    g.font = "11.5px system-ui, sans-serif";
    g.textBaseline = "middle";
    g.textAlign = "right";
    g.lineWidth = 1;
    for (const value of steps(0, this.top, this.height / 70, binary ? 2 : 10)) {
      const y = Math.round(this.y(value)) + 0.5;
      g.strokeStyle = css("--line");
      line(g, LEFT, y, this.width - RIGHT, y);
      g.fillStyle = css("--soft");
      g.fillText(value ? bytes(value) : "0", LEFT - 7, y);
    }
    g.textBaseline = "top";
    const y = this.height - BOTTOM + 6;
    const shift = this.axis === "steps" ? SETUP : 0;
    for (const value of steps(this.from - shift, this.to - shift, this.inner / 110).map(round => round + shift)) {
      const x = this.x(value), text = this.label(value);
      g.textAlign = x < LEFT + 24 ? "left" : x > this.width - RIGHT - 24 ? "right" : "center";
      g.fillText(text, x, y);
    }
  }

  label(value) {
    if (this.axis === "time") return tick(value, this.to - this.from);
    if (this.axis === "events") return count(Math.round(value));
    const step = Math.round((value - SETUP) * 1e6) / 1e6;
    return Number.isInteger(step) && step >= 0 ? "step " + count(step) : "";
  }

  drawPhases(g) {
    g.font = "600 11px system-ui, sans-serif";
    g.textBaseline = "middle";
    g.textAlign = "center";
    let edge = -1, shown = "";
    for (const [from, to, phase, start, stop] of this.data.phases) {
      const ends = this.axis === "events" ? [this.position(from), this.position(to)] : [this.place(start), this.place(stop)];
      const a = Math.max(LEFT, this.x(ends[0])), b = Math.min(this.width - RIGHT, this.x(ends[1]));
      if (b <= LEFT || a >= this.width - RIGHT || b - a < 0.3 && a - edge < 1 && shown === phase) continue;
      const name = PHASES[phase];
      g.fillStyle = css("--" + name);
      g.fillRect(a, 4, Math.max(b - a - (b - a > 3 ? 1 : 0), 0.5), 15);
      if (b - a > 3) {
        g.globalAlpha = 0.06;
        g.fillRect(a, TOP - 2, b - a, this.height - TOP - BOTTOM + 2);
        g.globalAlpha = 1;
      }
      if (b - a > g.measureText(name).width + 8) {
        g.fillStyle = css("--phase");
        g.fillText(name, (a + b) / 2, 12);
      }
      [edge, shown] = [b, phase];
    }
  }

  drawAreas(g) {
    const { columns, ratio } = this, C = columns.categories, n = columns.count, floor = new Float64Array(n), ground = this.y(0);
    const scale = (this.height - TOP - BOTTOM) / this.top;
    for (const c of this.order) {
      if (this.hidden.has(c)) continue;
      g.fillStyle = COLORS[this.data.meta.categories[c]];
      g.beginPath();
      for (let i = 0; i < n; i++) {
        if (columns.best[i] === -2) break;
        const size = columns.state[i * C + c];
        if (size > 0) g.rect(LEFT + i / ratio, ground - (floor[i] + size) * scale, 1 / ratio, size * scale);
        floor[i] += size;
      }
      g.fill();
    }
    if (!this.hidden.size) this.drawLeast(g, ground, scale);
  }

  drawLeast(g, ground, scale) {  // where a column also had much less: its least, as a line
    const { columns, ratio } = this;
    g.fillStyle = "rgb(255 255 255 / 55%)";
    g.beginPath();
    for (let i = 0; i < columns.count; i++) {
      if (columns.best[i] !== -2 && (columns.most[i] - columns.least[i]) * scale > 3) {
        g.rect(LEFT + i / ratio, ground - columns.least[i] * scale, 1 / ratio, 1);
      }
    }
    g.fill();
  }

  drawGhost(g) {
    g.beginPath();
    for (let i = 0; i < this.ghost.count; i++) {
      if (this.ghost.best[i] === -2) break;
      const x = LEFT + i, y = this.y(this.ghost.most[i]);
      if (i) g.lineTo(x, y); else g.moveTo(x, y);
    }
    g.lineJoin = "round";
    for (const [color, width] of [[css("--card"), 4], [css("--ink"), 1.75]]) {
      g.strokeStyle = color;
      g.lineWidth = width;
      g.stroke();
    }
  }

  // Draw over the areas what some blocks hold together: those whose maker passes a test; null for nothing.
  select(label, test) {
    this.selected = null;
    if (label) {
      const { data } = this, hit = data.makerSize.map((_, m) => test(m) ? 1 : 0), sums = new Float64Array(data.n + 1);
      let now = 0, most = 0, blocks = 0;
      for (let b = 0; b < data.blocks; b++) if (hit[data.maker[b]]) { blocks++; if (b < data.meta.initial) now += data.size(b); }
      sums[0] = most = now;
      for (let e = 0; e < data.n; e++) {
        if (hit[data.maker[data.block[e]]]) { now += data.change(e); if (now > most) most = now; }
        sums[e + 1] = now;
      }
      this.selected = { label, sums, most, blocks };
    }
    this.draw();
  }

  drawSelected(g) {
    const { columns, ratio, selected } = this;
    g.beginPath();
    for (let i = 0; i < columns.count; i++) {
      if (columns.best[i] === -2) break;
      const x = LEFT + i / ratio, y = this.y(selected.sums[columns.best[i] + 1]);
      if (i) g.lineTo(x, y); else g.moveTo(x, y);
    }
    g.lineJoin = "round";
    for (const [color, width] of [[css("--card"), 5], [css("--ink"), 2]]) {
      g.strokeStyle = color;
      g.lineWidth = width;
      g.stroke();
    }
  }

  drawPeak(g) {
    const x = this.x(this.position(this.data.peakAt)), y = this.y(this.data.peak);
    if (x < LEFT - 1 || x > this.width - RIGHT + 1 || this.hidden.size) return;
    g.font = "600 12px system-ui, sans-serif";
    g.textBaseline = "middle";
    const text = "peak " + bytes(this.data.peak), width = g.measureText(text).width + 12, left = x + width + 12 > this.width - RIGHT;
    const start = left ? x - width - 8 : x + 8, middle = Math.max(y + 2, TOP + 10);
    g.fillStyle = css("--ink");
    g.beginPath();
    g.roundRect(start, middle - 10, width, 20, 5);
    g.fill();
    g.fillStyle = css("--card");
    g.textAlign = "left";
    g.fillText(text, start + 6, middle + 0.5);
    g.beginPath();
    g.arc(x, y, 4.5, 0, 7);
    g.fill();
    g.strokeStyle = css("--ink");
    g.lineWidth = 2;
    g.stroke();
  }

  // What lies over the chart: the pinned moment, the cursor, the life of the block below it.
  drawOverlay() {
    const [g, width, height] = this.fit(this.overlay), bottom = height - BOTTOM, right = width - RIGHT;
    const pin = this.x(this.position(this.pinned));
    g.save();
    g.beginPath();
    g.rect(LEFT, 0, right - LEFT, height);
    g.clip();
    g.strokeStyle = css("--ink");
    g.lineWidth = 1.5;
    g.setLineDash([5, 4]);
    line(g, pin, TOP - 6, pin, bottom);
    g.setLineDash([]);
    if (this.hover) {
      const { moment, block, y0, y1 } = this.hover, x = Math.max(LEFT, this.x(this.position(moment)));
      if (block >= 0) {
        const a = this.x(this.position(this.data.birth[block])), b = this.x(this.position(this.data.death[block]));
        const y = Math.min(y0, y1), tall = Math.max(Math.abs(y1 - y0), 2);
        g.fillStyle = "rgb(255 255 255 / 45%)";
        g.fillRect(a, y, Math.max(b - a, 1.5), tall);
        g.strokeStyle = css("--ink");
        g.lineWidth = 1.25;
        g.strokeRect(a, y, Math.max(b - a, 1.5), tall);
      }
      g.globalAlpha = 0.7;
      g.lineWidth = 1;
      line(g, x, TOP - 2, x, bottom);
    }
    g.restore();
  }

  drawMap() {
    const [g, width, height] = this.fit(this.map), inner = Math.max(width - LEFT - RIGHT, 1), whole = this.furthest();
    if (!this.mapped || this.mapped.key !== [this.axis, this.data.n, inner].join()) {
      const view = [this.from, this.to];
      [this.from, this.to] = [0, whole];
      this.mapped = Object.assign(this.sample(this.data, Math.floor(inner)), { key: [this.axis, this.data.n, inner].join() });
      [this.from, this.to] = view;
    }
    g.fillStyle = css("--faint");
    g.beginPath();
    for (let i = 0; i < this.mapped.count; i++) {
      const tall = this.mapped.most[i] / (this.data.peak || 1) * (height - 6);
      if (this.mapped.best[i] !== -2) g.rect(LEFT + i, height - 2 - tall, 1, tall);
    }
    g.globalAlpha = 0.6;
    g.fill();
    g.globalAlpha = 1;
    const a = LEFT + this.from / whole * inner, b = LEFT + this.to / whole * inner;
    g.fillStyle = css("--back");
    g.globalAlpha = 0.75;
    g.fillRect(LEFT, 0, a - LEFT, height);
    g.fillRect(b, 0, width - RIGHT - b, height);
    g.globalAlpha = 1;
    g.strokeStyle = css("--forward");
    g.lineWidth = 1.5;
    g.beginPath();
    g.roundRect(a, 1, Math.max(b - a, 3), height - 2, 4);
    g.stroke();
  }

  // What is below a point -----------------------------------------------------------------------------------
  under(x, y) {
    if (x < LEFT || x > this.width - RIGHT || y < TOP - 8 || y > this.height - BOTTOM + 8) return null;
    const i = Math.min(this.columns.count - 1, Math.floor((x - LEFT) * this.ratio)), moment = this.columns.best[i];
    if (moment === -2) return null;
    const C = this.columns.categories, height = this.bytesAt(y);
    let floor = 0;
    for (const c of this.order) {
      if (this.hidden.has(c)) continue;
      const size = this.columns.state[i * C + c];
      if (size > 0 && height >= floor && height < floor + size) return this.found(moment, c, floor, height);
      floor += size;
    }
    return { moment, category: -1, block: -1 };
  }

  found(moment, category, floor, height) {
    const { data } = this, stop = data.bornUntil(moment);
    let sum = floor;
    for (let b = 0; b < stop; b++) {
      if (data.death[b] > moment && data.category[b] === category) {
        const size = data.size(b);
        if (sum + size > height) return { moment, category, block: b, y0: this.y(sum), y1: this.y(sum + size) };
        sum += size;
      }
    }
    return { moment, category, block: -1 };
  }
}

function line(g, x0, y0, x1, y1) {
  g.beginPath();
  g.moveTo(x0, y0);
  g.lineTo(x1, y1);
  g.stroke();
}

function tick(us, width) {  // as many digits as the view needs
  if (us === 0) return "0";
  const [unit, name] = width >= 2e6 ? [1e6, "s"] : width >= 2e3 ? [1e3, "ms"] : [1, "µs"];
  const places = Math.max(0, Math.min(3, Math.ceil(-Math.log10(width / unit / 10))));
  return (us / unit).toLocaleString("en-US", { maximumFractionDigits: places }) + " " + name;
}
