// The list of models with their throughput and latency, from the server's metrics.

const SVG = "http://www.w3.org/2000/svg";
const KEPT = 60; // looks that the charts show
const WINDOW = 5; // looks that the figures are of

export function element(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children);
  return e;
}

// parse reads Prometheus' text format: a list of {name, labels, value}.
export function parse(text) {
  const list = [];
  for (const line of text.split("\n")) {
    const m = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!m) continue;
    const labels = {};
    for (const [, key, value] of (m[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
      labels[key] = value.replace(/\\(.)/g, (_, c) => (c === "n" ? "\n" : c));
    }
    list.push({ name: m[1], labels, value: m[3] === "+Inf" ? Infinity : Number(m[3]) });
  }
  return list;
}

// counters are a model's counters at one time.
function counters(samples, model) {
  const mine = samples.filter((s) => s.labels.model === model);
  const sum = (name, where = () => true) => mine.reduce((n, s) => (s.name === name && where(s.labels) ? n + s.value : n), 0);
  const buckets = new Map();
  for (const s of mine) {
    if (s.name !== "pce_inference_duration_seconds_bucket") continue;
    const le = s.labels.le === "+Inf" ? Infinity : Number(s.labels.le);
    buckets.set(le, (buckets.get(le) ?? 0) + s.value);
  }
  return {
    rows: sum("pce_inference_rows_total"),
    requests: sum("pce_inference_requests_total"),
    failed: sum("pce_inference_requests_total", (l) => l.code !== "200"),
    waiting: sum("pce_inference_queue_rows"),
    bytes: sum("pce_model_memory_bytes"),
    buckets,
  };
}

// quantile estimates a quantile of the durations that came between two looks, or NaN.
export function quantile(before, after, q) {
  const bounds = [...after.keys()].sort((a, b) => a - b);
  const counts = bounds.map((le) => after.get(le) - (before.get(le) ?? 0));
  const total = counts.at(-1) ?? 0;
  if (!(total > 0)) return NaN;
  const want = q * total;
  const i = counts.findIndex((n) => n >= want);
  const lo = i > 0 ? bounds[i - 1] : 0;
  const below = i > 0 ? counts[i - 1] : 0;
  if (bounds[i] === Infinity) return lo;
  return lo + ((bounds[i] - lo) * (want - below)) / (counts[i] - below);
}

const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

export function seconds(x) {
  if (!Number.isFinite(x)) return "–";
  if (x >= 1) return `${number.format(x)} s`;
  return x >= 1e-3 ? `${number.format(x * 1e3)} ms` : `${number.format(x * 1e6)} µs`;
}

function bytes(x) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; x >= 1024 && i < units.length - 1; i++) x /= 1024;
  return `${number.format(x)} ${units[i]}`;
}

// draw draws values as a line over an area; those that are NaN interrupt it.
function draw(svg, values) {
  const top = Math.max(...values.filter(Number.isFinite), 1e-12);
  const x = (i) => ((i + KEPT - values.length) / (KEPT - 1)) * 100;
  let line = "";
  let area = "";
  let from = -1;
  const close = (i) => {
    if (from >= 0) area += `L${x(i)} 40L${x(from)} 40Z`;
    from = -1;
  };
  values.forEach((v, i) => {
    if (!Number.isFinite(v)) {
      close(i - 1);
      return;
    }
    const at = `${x(i).toFixed(2)} ${(38 - (v / top) * 36).toFixed(2)}`;
    line += (from < 0 ? "M" : "L") + at;
    area += (from < 0 ? "M" : "L") + at;
    if (from < 0) from = i;
  });
  close(values.length - 1);
  svg.querySelector(".area").setAttribute("d", area);
  svg.querySelector(".line").setAttribute("d", line);
}

function spark(kind) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", `spark ${kind}`);
  svg.setAttribute("viewBox", "0 0 100 40");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  for (const [name, attributes] of [["line", { x1: 0, x2: 100, y1: 39.5, y2: 39.5 }], ["path", { class: "area" }], ["path", { class: "line" }]]) {
    const e = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
    svg.append(e);
  }
  return svg;
}

// Card shows one model.
class Card {
  constructor(name) {
    this.looks = [];
    this.rates = [];
    this.latencies = [];
    this.state = element("span", { class: "pill" });
    this.facts = element("p", { class: "facts soft small" });
    this.rate = element("dd");
    this.latency = element("dd");
    this.charts = [spark("rate"), spark("latency")];
    const figure = (title, value, chart) => element("div", {}, element("dl", { class: "figure" }, element("dt", {}, title), value), chart);
    this.node = element("article", { class: "model", "aria-label": name },
      element("div", { class: "about" }, element("h3", {}, name, this.state), this.facts),
      figure("rows per second", this.rate, this.charts[0]),
      figure("latency, p50 and p99", this.latency, this.charts[1]));
  }

  // update shows a look: the model's line of the index, its counters, when it was.
  update(entry, now, time) {
    const good = entry.state === "READY";
    this.state.textContent = entry.state.toLowerCase();
    this.state.className = `pill ${good ? "good" : entry.reason ? "bad" : ""}`;
    const facts = [];
    if (entry.version) facts.push(`version ${entry.version}`);
    if (now.bytes > 0) facts.push(bytes(now.bytes));
    facts.push(`${now.requests.toLocaleString("en")} requests`, `${now.failed.toLocaleString("en")} refused`);
    if (now.waiting > 0) facts.push(`${now.waiting} rows wait`);
    if (entry.reason) facts.push(entry.reason);
    this.facts.textContent = facts.join(" · ");

    const last = this.looks.at(-1);
    const anew = last && ["rows", "requests", "failed"].some((name) => now[name] < last[name]); // a server counts from 0 when it begins
    if (anew) this.looks = [];
    this.looks.push({ ...now, time });
    if (this.looks.length > WINDOW + 1) this.looks.shift();
    const first = this.looks[0];
    const took = (time - first.time) / 1000;
    this.rate.textContent = took > 0 ? number.format((now.rows - first.rows) / took) : "–";
    const p50 = quantile(first.buckets, now.buckets, 0.5);
    this.latency.textContent = Number.isFinite(p50) ? `${seconds(p50)} · ${seconds(quantile(first.buckets, now.buckets, 0.99))}` : "–";
    if (last) {
      this.rates.push(anew ? NaN : ((now.rows - last.rows) / (time - last.time)) * 1000);
      this.latencies.push(anew ? NaN : quantile(last.buckets, now.buckets, 0.99));
      for (const list of [this.rates, this.latencies]) if (list.length > KEPT) list.shift();
      draw(this.charts[0], this.rates);
      draw(this.charts[1], this.latencies);
    }
  }
}

// Live keeps the cards of all models.
export class Live {
  constructor(node) {
    this.node = node;
    this.cards = new Map();
  }

  update(index, metrics, time) {
    const samples = parse(metrics);
    for (const entry of index) {
      let card = this.cards.get(entry.name);
      if (!card) {
        card = new Card(entry.name);
        this.cards.set(entry.name, card);
        this.node.append(card.node);
      }
      card.update(entry, counters(samples, entry.name), time);
    }
  }
}
