// What is alive by call stack: the outermost line on top, below it what it called, each as wide as the bytes made there.
"use strict";
const ROW = 24, THINNEST = 0.003;  // pixels; a share of the width
let opened = [];  // frames from the outermost to the one that fills the width

function callTree(data, alive) {
  const node = frame => ({ frame, total: 0, state: new Float64Array(data.categories), children: new Map() });
  const add = (at, item) => { at.total += item.total; item.state.forEach((size, c) => { at.state[c] += size; }); };
  const root = node(-1);
  for (const item of summed(data, alive, 0, b => data.makerStack[data.maker[b]])) {
    const stack = item.name < 0 ? [] : data.meta.stacks[item.name];
    let at = root;
    add(root, item);
    for (let i = stack.length - 1; i >= 0; i--) {
      if (!at.children.has(stack[i])) at.children.set(stack[i], node(stack[i]));
      add(at = at.children.get(stack[i]), item);
    }
  }
  return root;
}

function icicle(data, alive, total) {
  const root = callTree(data, alive), box = $("#icicle"), bars = [];
  let deepest = 0;
  const draw = (node, depth, left, width, path) => {
    deepest = Math.max(deepest, depth);
    bars.push(bar(data, node, depth, left, width, path, total));
    let at = left;
    const next = opened[path.length];
    for (const child of [...node.children.values()].sort((a, b) => b.total - a.total)) {
      const inside = opened.length > path.length, wide = inside ? (child.frame === next ? width : 0) : width * child.total / node.total;
      if (wide >= THINNEST) draw(child, depth + 1, at, wide, [...path, child.frame]);
      at += wide;
    }
  };
  for (let at = root, i = 0; i < opened.length; i++) {  // what was opened may not be alive at this moment
    at = at.children.get(opened[i]);
    if (!at) opened = opened.slice(0, i);
    if (!at) break;
  }
  if (root.children.size) draw(root, 0, 0, 1, []);
  box.replaceChildren(...(bars.length ? bars : [make("p", { class: "more" }, "No lines were recorded of what is alive.")]));
  box.style.height = bars.length ? (deepest + 1) * ROW + "px" : "";
  box.again = () => icicle(data, alive, total);
  findInIcicle($("#search").value);
}

function bar(data, node, depth, left, width, path, total) {
  const [file, number, name] = node.frame < 0 ? [-1, 0, ""] : data.meta.frames[node.frame];
  const where = file < 0 ? "everything" : `${place([data.meta.files[file], number])} ${name}`, source = data.meta.source[node.frame];
  const text = `${where}: ${bytes(node.total)}, ${share(node.total, total)}${source ? "\n" + source : ""}`;
  const open = path.length === opened.length && path.every((frame, i) => frame === opened[i]);
  return make("button", { type: "button", title: file < 0 ? text : `${data.meta.files[file]}\n${text}`, "aria-label": text,
    "data-text": `${file < 0 ? "" : data.meta.files[file]}:${number} ${name}`.toLowerCase(),
    style: { left: 100 * left + "%", width: 100 * width + "%", top: depth * ROW + "px" },
    onclick: () => { opened = open ? path.slice(0, -1) : path; $("#icicle").again(); } },
  make("span", {}, where, make("small", {}, " " + bytes(node.total))), stackBar(data, node.state, node.total));
}

// Show where in the stacks a text is: in a file's name, a line or a function.
function findInIcicle(text) {
  const wanted = text.trim().toLowerCase();
  for (const node of document.querySelectorAll("#icicle button")) node.classList.toggle("hit", !!wanted && node.dataset.text.includes(wanted));
}
