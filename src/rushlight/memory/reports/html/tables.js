// What was alive at a moment, as tables: by category, module, line, operator and block.
"use strict";

// Sums over what is alive: for each key bytes by category, bytes and blocks.
function summed(data, alive, moment, key) {
  const found = new Map();
  for (const b of alive) {
    const name = key(b), size = data.size(b);
    let row = found.get(name);
    if (!row) found.set(name, row = { name, total: 0, count: 0, state: new Float64Array(data.categories) });
    row.total += size;
    row.count++;
    row.state[data.category[b]] += size;
  }
  return [...found.values()].sort((a, b) => b.total - a.total);
}

function stackBar(data, state, whole) {
  const bar = make("div", { class: "stack" });
  for (const c of chart.order) {
    if (state[c] > 0) bar.append(make("i", { style: { width: 100 * state[c] / whole + "%", background: COLORS[data.meta.categories[c]] } }));
  }
  return bar;
}

function row(data, item, total, whole, name, label, test) {
  const choose = event => { if (!event.target.closest("button") && (event.key || "Enter") === "Enter") choosePart(label, test); };
  const pick = label ? { class: "pick", title: "draw what it holds over the timeline", tabindex: 0, onclick: choose, onkeydown: choose } : {};
  return make("tr", pick, make("td", { class: "name" }, name), make("td", { class: "n" }, bytes(item.total)),
    make("td", { class: "n pct" }, share(item.total, total)), make("td", { class: "bars" }, stackBar(data, item.state, whole)));
}

function fill(selector, rows, limit, total, first) {
  const table = $(selector);
  table.replaceChildren(make("thead", {}, make("tr", {}, make("th", {}, first), make("th", { class: "n" }, "bytes"),
    make("th", { class: "n" }, "share"), make("th", { class: "unseen" }, "by category"))));
  const body = make("tbody", {});
  body.append(...rows.slice(0, limit));
  if (rows.length > limit) {
    const more = make("tr", {}, make("td", { colspan: 4 }, make("button", { type: "button", onclick: () => {
      more.remove();
      body.append(...rows.slice(limit));
    } }, `${count(rows.length - limit)} more`)));
    body.append(more);
  }
  if (!rows.length) body.append(make("tr", {}, make("td", { colspan: 4, class: "more" }, "Nothing was alive.")));
  table.append(body);
}

function byCategory(data, alive, moment, total) {
  const rows = summed(data, alive, moment, b => data.category[b]), whole = rows.length ? rows[0].total : 1;
  fill("#by-category", rows.map(item => {
    const name = data.meta.categories[item.name];
    return row(data, item, total, whole, [make("span", { class: "dot", style: { background: COLORS[name], marginRight: "8px" } }),
      words(name), make("span", { class: "more" }, ` · ${count(item.count)} ${item.count === 1 ? "block" : "blocks"}`)]);
  }), 10, total, "category");
}

const OUTSIDE = "(outside modules)";

// Modules as a tree: "layers.0.mlp" lies in "layers.0", which lies in "layers".
function moduleTree(data, alive, moment) {
  const node = name => ({ name, total: 0, count: 0, state: new Float64Array(data.categories), children: new Map() });
  const root = node("");
  for (const item of summed(data, alive, moment, b => data.module(b))) {
    let at = root;
    for (const part of item.name ? item.name.split(".") : [OUTSIDE]) {
      if (!at.children.has(part)) at.children.set(part, node(part));
      at = at.children.get(part);
      at.total += item.total;
      at.count += item.count;
      item.state.forEach((size, c) => { at.state[c] += size; });
    }
  }
  return root;
}

function byModule(data, alive, moment, total) {
  const root = moduleTree(data, alive, moment), sorted = node => [...node.children.values()].sort((a, b) => b.total - a.total);
  const top = sorted(root), whole = top.length ? top[0].total : 1;
  const branch = (node, depth, path) => {
    const children = sorted(node), toggle = make("button", { type: "button", class: "tree", "aria-expanded": "false",
      "aria-label": `parts of ${node.name}`, style: { visibility: children.length ? "visible" : "hidden" } }, "▸");
    const line = row(data, node, total, whole, make("span", { style: { paddingLeft: depth * 16 + "px" } }, toggle, node.name),
      path === OUTSIDE ? "" : path, m => { const i = data.makerModule[m], name = i < 0 ? "" : data.meta.modules[i]; return name === path || name.startsWith(path + "."); });
    let open = null;
    toggle.addEventListener("click", () => {
      if (open) { const close = list => list.forEach(item => { item.shut(); item.line.remove(); }); close(open); open = null; }
      else { open = children.map(child => branch(child, depth + 1, `${path}.${child.name}`)); line.after(...open.map(item => item.line)); }
      toggle.textContent = open ? "▾" : "▸";
      toggle.setAttribute("aria-expanded", String(!!open));
    });
    return { line, shut: () => { if (open) toggle.click(); }, open: () => { if (children.length) toggle.click(); } };
  };
  const items = top.map(node => branch(node, 0, node.name));
  fill("#by-module", items.map(item => item.line), 12, total, "module");
  const big = top.findIndex(node => node.children.size);
  if (big >= 0 && big < 12) items[big].open();
}

function byLine(data, alive, moment, total) {
  const key = b => { const f = data.makerStack[data.maker[b]]; return f < 0 ? "" : data.meta.stacks[f][0]; };
  const rows = summed(data, alive, moment, key), whole = rows.length ? rows[0].total : 1;
  fill("#by-line", rows.map(item => {
    if (item.name === "" || item.name == null) return row(data, item, total, whole, make("span", { class: "more" }, "no line recorded"));
    const [file, number, name] = data.meta.frames[item.name], path = data.meta.files[file];
    const source = data.meta.source[item.name];
    return row(data, item, total, whole, [place([path, number]), make("span", { class: "where", title: path }, `in ${name}`),
      source && make("span", { class: "source" }, source)], place([path, number]), m => {
      const stack = data.makerStack[m];
      return stack >= 0 && data.meta.stacks[stack][0] === item.name;
    });
  }), 8, total, "line");
}

function byOperator(data, alive, moment, total) {
  const rows = summed(data, alive, moment, b => data.operator(b)), whole = rows.length ? rows[0].total : 1;
  fill("#by-operator", rows.map(item => row(data, item, total, whole,
    item.name || make("span", { class: "more" }, "(outside operators)"), item.name,
    m => data.makerOperator[m] >= 0 && data.meta.operators[data.makerOperator[m]] === item.name)), 8, total, "operator");
}

const frames = list => make("ol", {}, list.map(([file, line, name, source]) => make("li", { title: file }, `${shorten(file)}:${line}  ${name}`,
  source && make("span", { class: "source" }, source))));
const shorten = file => file.length > 60 ? "…" + file.slice(-58) : file;

function life(data, b) {
  const birth = data.birth[b], death = data.death[b];
  const from = birth < 0 ? "from the start" : duration(data.time[birth]), to = death >= data.n ? "the end" : duration(data.time[death]);
  return `${from} – ${to}`;
}

function block(data, b, moment) {
  const category = data.meta.categories[data.category[b]], stack = data.stack(b);
  const who = [data.operator(b), data.module(b), stack.length ? place(stack[0]) : ""].filter(Boolean).join(" · ");
  return make("details", { class: "block" }, make("summary", {}, make("span", { class: "bytes" }, bytes(data.size(b))),
    make("span", { class: "cat" }, make("span", { class: "dot", style: { background: COLORS[category] } }), words(category)),
    make("span", { class: "who" }, who || make("span", { class: "more" }, "made before the recording")),
    make("span", { class: "life" }, life(data, b))),
    stack.length ? frames(stack) : make("ol", {}, make("li", {}, "no stack was recorded")));
}

function largest(data, alive, moment) {
  const sorted = Int32Array.from(alive).sort((a, b) => data.size(b) - data.size(a) || a - b), box = $("#blocks");
  box.replaceChildren();
  const show = (from, to) => {
    for (let i = from; i < Math.min(to, sorted.length); i++) box.append(block(data, sorted[i], moment));
    if (to < sorted.length) {
      const more = make("button", { type: "button", onclick: () => { more.remove(); show(to, to + 50); } }, `${count(sorted.length - to)} more`);
      box.append(more);
    }
  };
  show(0, 12);
}

function showMoment(data, moment) {
  const alive = data.alive(moment), total = alive.reduce((sum, b) => sum + data.size(b), 0), peak = moment === data.peakAt;
  const phase = PHASES[data.phase(moment)], when = moment < 0 ? "the beginning" : duration(data.time[moment]);
  $("#when").replaceChildren(`${peak ? "At the peak" : "Pinned"}: ${bytes(total)} at ${when}`,
    phase ? make("span", { class: "phase", style: { background: `var(--${phase})`, marginLeft: "10px" } }, phase) : "");
  $("#topeak").hidden = peak;
  byCategory(data, alive, moment, total);
  byModule(data, alive, moment, total);
  byLine(data, alive, moment, total);
  byOperator(data, alive, moment, total);
  icicle(data, alive, total);
  largest(data, alive, moment);
}
