// The recording: columns unpacked, replayed once, and answered from.
// A moment is the number of an event: the state after it; -1 is the beginning.
"use strict";
const ALLOC = 0, FREE = 1, BUCKET = 32, FORWARD = 1, BACKWARD = 2, SETUP = 0.2;

async function unpack(text) {
  const raw = atob(text.trim()), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

class Data {
  constructor(meta, buffer) {
    this.meta = meta;
    let at = 0;
    const take = (type, count) => {
      const found = new type(buffer, at, count);
      at += count * type.BYTES_PER_ELEMENT;
      return found;
    };
    const [n, blocks, makers, refs] = [meta.events, meta.blocks, meta.makers, meta.refs];
    this.n = n;
    this.blocks = blocks;
    this.categories = meta.categories.length;
    this.makerSize = take(Float64Array, makers);
    this.makerStack = take(Int32Array, makers);
    this.makerOperator = take(Int32Array, makers);
    this.makerModule = take(Int32Array, makers);
    this.maker = take(Uint32Array, blocks);
    const dt = take(Uint32Array, n), ref = take(Uint32Array, refs);
    const code = take(Uint8Array, n), first = take(Uint8Array, meta.initial);
    this.place(dt);
    this.replay(code, ref, first);
    this.phases = this.spans(meta.phases);
    const last = Math.max(...this.phases.filter(span => span[2] === BACKWARD).map(span => span[3]));  // what comes after it is no step
    this.begun = [0, ...this.phases.map(span => span[2] === FORWARD ? span[3] : Infinity).filter(time => time < (last > 0 ? last : Infinity))];
  }

  place(dt) {  // microseconds since the first event
    this.time = new Float64Array(this.n);
    let now = 0;
    for (let i = 0; i < this.n; i++) this.time[i] = now += dt[i];
    this.duration = Math.max(now, this.meta.last);
  }

  replay(code, ref, first) {
    const { n, blocks, categories: C, meta } = this;
    const buckets = Math.ceil(n / BUCKET) + 1;
    this.action = new Uint8Array(n);
    this.block = new Int32Array(n);
    this.birth = new Int32Array(blocks).fill(-1);
    this.death = new Int32Array(blocks).fill(n);
    this.category = new Uint8Array(blocks);
    this.start = new Float64Array(buckets * C);  // state before each bucket
    this.best = new Int32Array(buckets);  // the event of most bytes in each bucket
    this.most = new Float64Array(buckets);
    this.least = new Float64Array(buckets);
    const state = new Float64Array(C);
    for (let b = 0; b < meta.initial; b++) {
      this.category[b] = first[b];
      state[first[b]] += this.size(b);
    }
    let total = state.reduce((a, b) => a + b, 0), next = meta.initial, r = 0;
    this.initial = state.slice();
    this.peak = total;
    this.peakAt = -1;
    for (let e = 0; e < n; e++) {
      const k = e / BUCKET | 0;
      if (e % BUCKET === 0) {
        this.start.set(state, k * C);
        this.most[k] = -1;
        this.least[k] = Infinity;
      }
      const action = code[e] & 3, value = code[e] >> 2;
      const b = action === ALLOC ? next++ : next - ref[r++], size = this.size(b);
      this.action[e] = action;
      this.block[e] = b;
      if (action === ALLOC) {
        this.birth[b] = e;
        this.category[b] = value;
        state[value] += size;
        total += size;
      } else {
        this.death[b] = e;
        state[this.category[b]] -= size;
        total -= size;
      }
      if (total > this.most[k]) { this.most[k] = total; this.best[k] = e; }
      if (total < this.least[k]) this.least[k] = total;
      if (total > this.peak) { this.peak = total; this.peakAt = e; }
    }
    this.end = total;
  }

  spans(list) {  // runs of one phase: [event, next event, number, time, time of the next]
    const found = [], close = [this.n, 0, this.duration];
    list.forEach(([at, phase, time], i) => {
      const [stop, , until] = list[i + 1] || close;
      if (phase && (stop > at || until > time)) found.push([at, stop, phase, Math.max(time, 0), until]);
    });
    return found;
  }

  // Steps begin where a forward pass does, the first at SETUP, after what builds the model: so those of two recordings align.
  stepAt(time) {
    let low = 0, high = this.begun.length;
    while (high - low > 1) {
      const middle = low + high >> 1;
      if (this.begun[middle] <= time) low = middle; else high = middle;
    }
    const length = (this.begun[low + 1] ?? this.duration) - this.begun[low];
    const part = length > 0 ? Math.min((time - this.begun[low]) / length, 1) : 0;
    return low ? low - 1 + SETUP + part : SETUP * part;
  }
  timeOf(step) {
    const at = step < SETUP ? step / SETUP : step - SETUP + 1, whole = Math.max(0, Math.min(Math.floor(at), this.begun.length - 1));
    return this.begun[whole] + (at - whole) * ((this.begun[whole + 1] ?? this.duration) - this.begun[whole]);
  }

  size(b) { return this.makerSize[this.maker[b]]; }

  change(e) {  // bytes that an event adds or takes
    const size = this.size(this.block[e]);
    return this.action[e] === ALLOC ? size : -size;
  }

  at(moment, state = new Float64Array(this.categories)) {  // bytes by category
    if (moment < 0) { state.set(this.initial); return state; }
    const k = moment / BUCKET | 0, C = this.categories;
    for (let c = 0; c < C; c++) state[c] = this.start[k * C + c];
    for (let e = k * BUCKET; e <= moment; e++) state[this.category[this.block[e]]] += this.change(e);
    return state;
  }

  total(moment) {
    let sum = 0;
    const state = this.at(moment);
    for (let c = 0; c < state.length; c++) sum += state[c];
    return sum;
  }

  // The moment of most bytes among events from <= e < to, and the least bytes there.
  extremes(from, to, found) {
    found.most = -1; found.least = Infinity; found.best = from;
    let e = from;
    while (e < to) {
      if (e % BUCKET === 0 && e + BUCKET <= to) {
        const k = e / BUCKET;
        if (this.most[k] > found.most) { found.most = this.most[k]; found.best = this.best[k]; }
        if (this.least[k] < found.least) found.least = this.least[k];
        e += BUCKET;
        continue;
      }
      const stop = Math.min(to, (e / BUCKET | 0) * BUCKET + BUCKET);
      let total = this.total(e - 1);
      for (; e < stop; e++) {
        total += this.change(e);
        if (total > found.most) { found.most = total; found.best = e; }
        if (total < found.least) found.least = total;
      }
    }
    return found;
  }

  bornUntil(moment) {  // blocks with a birth at or before the moment: they are numbered by birth
    let low = this.meta.initial, high = this.blocks;
    while (low < high) {
      const middle = low + high >> 1;
      if (this.birth[middle] <= moment) low = middle + 1; else high = middle;
    }
    return low;
  }

  alive(moment) {
    const found = [], stop = this.bornUntil(moment), { death } = this;
    for (let b = 0; b < stop; b++) if (death[b] > moment) found.push(b);
    return found;
  }

  phase(moment) {
    for (const [from, to, phase] of this.phases) if (moment >= from && moment < to) return phase;
    return 0;
  }

  operator(b) { const i = this.makerOperator[this.maker[b]]; return i < 0 ? "" : this.meta.operators[i]; }
  module(b) { const i = this.makerModule[this.maker[b]]; return i < 0 ? "" : this.meta.modules[i]; }
  stack(b) {  // frames [file, line, name], innermost first
    const i = this.makerStack[this.maker[b]];
    return i < 0 ? [] : this.meta.stacks[i].map(f => { const [file, line, name] = this.meta.frames[f]; return [this.meta.files[file], line, name, this.meta.source[f]]; });
  }
}
