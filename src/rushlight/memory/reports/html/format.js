// Numbers and names as text.
"use strict";
let binary = false;

function bytes(n, digits) {
  const base = binary ? 1024 : 1000, units = binary ? ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] : ["B", "kB", "MB", "GB", "TB", "PB"];
  let size = Math.abs(n), unit = 0;
  while (size >= base * 0.99995 && unit < units.length - 1) { size /= base; unit++; }
  const places = digits ?? (unit === 0 ? 0 : size < 10 ? 2 : size < 100 ? 1 : 0);
  return (n < 0 ? "−" : "") + size.toFixed(places) + " " + units[unit];
}

function duration(us) {
  const size = Math.abs(us);
  if (size < 1000) return us.toFixed(0) + " µs";
  if (size < 1e6) return (us / 1e3).toFixed(size < 1e4 ? 2 : size < 1e5 ? 1 : 0) + " ms";
  if (size < 12e7) return (us / 1e6).toFixed(size < 1e7 ? 2 : 1) + " s";
  if (size < 72e8) return (us / 6e7).toFixed(1) + " min";
  return (us / 36e8).toFixed(1) + " h";
}

function share(part, whole) {
  const value = whole ? 100 * part / whole : 0;
  return value === 0 ? "0 %" : value < 0.1 ? "< 0.1 %" : value.toFixed(value < 9.95 ? 1 : 0) + " %";
}

const count = n => n.toLocaleString("en-US");
const MEANINGS = {
  parameter: "what is trained", optimizer_state: "what the optimizer keeps for each parameter: Adam's averages, momentum",
  input: "data that the program made or read", gradient: "the .grad of parameters and other leaves",
  activation: "results that are kept for backward", autograd_detail: "gradients on their way through backward, and what else it needs for a while",
  temporary: "results that nothing keeps for backward", unknown: "made outside of operators, or before the recording began",
};
const words = name => name.replaceAll("_", " ");
const baseName = file => file.split(/[\\/]/).pop();
const place = ([file, line]) => file ? baseName(file) + ":" + line : "";

// Elements, never markup: names come from files.
function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "style") Object.assign(node.style, value);
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== false && value != null) node.setAttribute(key, value);
  }
  node.append(...children.flat().filter(child => child != null && child !== false));
  return node;
}
const $ = selector => document.querySelector(selector);

// Round steps for an axis.
function steps(low, high, wanted, base = 10) {
  const rough = (high - low) / Math.max(wanted, 1);
  if (!(rough > 0)) return [low];
  const power = base === 10 ? 10 ** Math.floor(Math.log10(rough)) : 2 ** Math.floor(Math.log2(rough));
  const step = (base === 10 ? [1, 2, 5, 10] : [1, 2]).map(m => m * power).find(s => s >= rough) || power;
  const found = [];
  for (let v = Math.ceil(low / step) * step; v <= high * (1 + 1e-12) && found.length < 100; v += step) found.push(v);
  return found;
}
