// Answers: numbers, pictures and tables of a request's outputs.

import { columnsOf, textOf } from "./evidence.js";
import { element, seconds } from "./live.js";

const MOST_ROWS = 64; // samples of an output that are shown
const MOST_COLUMNS = 100; // columns of a table

const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 7, useGrouping: false });

export function format(x) {
  if (Number.isNaN(x)) return "missing";
  if (!Number.isFinite(x)) return x < 0 ? "−∞" : "∞";
  const a = Math.abs(x);
  return (a !== 0 && (a < 1e-5 || a >= 1e12) ? x.toExponential(4) : number.format(x)).replace("-", "−");
}

// numbers are the elements of an output: JSON writes those that are not finite as texts.
export function numbers(output) {
  return output.data.map((x) => (typeof x === "string" ? { NaN, Infinity, "-Infinity": -Infinity }[x] ?? NaN : x));
}

// paint draws a row as an image. Codes go from black to white; with range, numbers from
// its first to its second. Missing cells are hatched.
export function paint(canvas, about, cells, { missing = false, range } = {}) {
  const [height, width, channels] = about.image;
  const scale = missing ? 8 : 1; // hatching wants pixels within a pixel
  canvas.width = width * scale;
  canvas.height = height * scale;
  const context = canvas.getContext("2d");
  const column = about.columns[0];
  const [lo, hi] = range ?? [0, column.kind === "continuous" ? 1 : Math.max(1, column.categories - 1)];
  const shade = (x) => Math.round(255 * Math.min(1, Math.max(0, (x - lo) / (hi - lo || 1))));
  const picture = context.createImageData(width * scale, height * scale);
  for (let y = 0; y < height * scale; y++) {
    for (let x = 0; x < width * scale; x++) {
      const from = (Math.floor(y / scale) * width + Math.floor(x / scale)) * channels;
      const to = (y * width * scale + x) * 4;
      for (let k = 0; k < 3; k++) {
        const cell = cells[from + (k % channels)];
        picture.data[to + k] = Number.isNaN(cell) ? ((x + y) % 8 < 2 ? 150 : 105) : shade(cell);
      }
      picture.data[to + 3] = 255;
    }
  }
  context.putImageData(picture, 0, 0);
}

function scroll(label, table) {
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, table);
}

function table(head, rows) {
  return element("table", {},
    element("thead", {}, element("tr", {}, ...head.map((h) => element("th", { scope: "col" }, h)))),
    element("tbody", {}, ...rows));
}

// pictures shows rows as images, with a range of shades where they are not codes.
function pictures(name, about, rows) {
  const flat = rows.flat().filter(Number.isFinite);
  const column = about.columns[0];
  const most = column.kind === "continuous" ? 1 : column.categories - 1;
  const codes = flat.every((x) => x >= 0 && x <= most);
  const range = codes ? undefined : [Math.min(...flat), Math.max(...flat)];
  const list = element("ul", { class: "pictures" });
  rows.forEach((row, i) => {
    const canvas = element("canvas", { role: "img", "aria-label": `${name} ${i + 1} of ${rows.length}` });
    paint(canvas, about, row, { range });
    list.append(element("li", {}, canvas));
  });
  const nodes = [list];
  if (range) nodes.push(element("p", { class: "soft small" }, `Black is ${format(range[0])}, white is ${format(range[1])}.`));
  return nodes;
}

// rowsTable shows rows of cells; those of the evidence are pale.
function rowsTable(name, columns, rows, evidence, cell) {
  const shown = columns.slice(0, MOST_COLUMNS);
  const body = rows.map((row) => element("tr", {}, ...shown.map((c, v) => element("td", evidence[v] === "" ? {} : { class: "given" }, cell(c, row[v])))));
  const nodes = [scroll(name, table(shown.map((c) => c.name), body))];
  if (shown.length < columns.length) nodes.push(element("p", { class: "soft small" }, `${columns.length - shown.length} further columns are left out.`));
  return nodes;
}

// distributions shows the probabilities of each column's categories.
function distributions(name, about, columns, values, categories) {
  if (about.image) {
    const mean = columns.map((_, v) => {
      let sum = 0;
      for (let k = 0; k < categories; k++) sum += k * (values[v * categories + k] || 0);
      return sum;
    });
    return [...pictures(name, about, [mean]), element("p", { class: "soft small" }, "The mean of each pixel's distribution.")];
  }
  return categoryTable(name, columns.slice(0, MOST_COLUMNS), values, categories);
}

// categoryTable lists the categories of columns with their probabilities.
function categoryTable(name, columns, values, categories) {
  const rows = [];
  columns.forEach((c, v) => {
    if (c.kind === "continuous") return;
    const count = Math.min(categories, c.categories ?? categories);
    for (let k = 0; k < count; k++) {
      const p = values[v * categories + k];
      if (Number.isNaN(p)) continue;
      rows.push(element("tr", {}, element("th", { scope: "row" }, k === 0 ? c.name : ""), element("td", { class: "text" }, c.labels?.[k] ?? String(k)),
        element("td", {}, format(p)), element("td", {}, element("progress", { max: "1", value: String(p), "aria-hidden": "true" }))));
    }
  });
  const head = element("tr", {}, ...[["column", "text"], ["category", "text"], ["probability", ""], ["", "bar"]].map(([h, c]) => element("th", { scope: "col", class: c }, h)));
  return [scroll(name, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)))];
}

// outputNodes shows an output of a request with one row. declared is what the metadata says
// of it, whose dimensions are -1 where they are the request's: as many samples as columns
// are no distributions. target is the column that was asked about, if it was one.
function outputNodes(output, declared, about, evidence, target) {
  const values = numbers(output);
  const columns = columnsOf(about);
  const shape = declared.shape.slice(1);
  if (output.name === "label" && target) return [element("p", { class: "big" }, textOf(target, values[0]) || "missing")];
  if (output.name === "probabilities" && target) return categoryTable(output.name, [target], values, values.length);
  if (values.length === 1 && shape.at(-1) !== columns.length) return [element("p", { class: "big" }, format(values[0]))];
  if (shape.length === 2 && shape[0] === columns.length) return distributions(output.name, about, columns, values, shape[1]);
  const width = output.shape.at(-1);
  const rows = [];
  for (let at = 0; at < values.length && rows.length < MOST_ROWS; at += width) rows.push(values.slice(at, at + width));
  const nodes = [];
  const cells = shape.at(-1) === columns.length; // a matrix of that many columns that a request names has none
  if (cells && about.image) nodes.push(...pictures(output.name, about, rows));
  else if (cells) {
    // Means and variances are numbers, whatever the column; cells may be labels.
    const labels = !["mean", "variance"].includes(output.name);
    nodes.push(...rowsTable(output.name, columns, rows, evidence, (c, x) => (labels && c.labels && textOf(c, x)) || format(x)));
  } else {
    const head = Array.from({ length: width }, (_, k) => ({ name: String(k) }));
    nodes.push(...rowsTable(output.name, head, rows, head.map(() => ""), (_, x) => format(x)));
  }
  if (rows.length * width < values.length) nodes.push(element("p", { class: "soft small" }, `The first ${rows.length} of ${values.length / width} are shown.`));
  return nodes;
}

const titles = { log_prob: "Log-probability, in nats", samples: "Samples", mpe: "Most probable completion", marginals: "Marginals",
  bound: "No completion has a higher log-probability than", label: "Most probable class", probability: "Its probability", probabilities: "All classes", mean: "Mean", variance: "Variance",
  covariance: "Covariances", entropy: "Entropy, in nats", entropy_error: "Its standard error",
  cross_entropy: "Cross-entropy, in nats", cross_entropy_error: "Its standard error", kl: "Divergence, in nats", kl_error: "Its standard error" };

// answerNodes shows the answer to a request. took is what it took, in seconds.
export function answerNodes(answer, about, evidence, request, query, took, command) {
  const columns = columnsOf(about);
  const outputs = about.queries.find((q) => q.name === request.parameters.query).outputs;
  const target = columns.find((c) => c.name === request.parameters.class) ?? columns[Number(request.parameters.class) - 1];
  const facts = [query, `version ${answer.model_version}`, seconds(took)];
  for (const [key, value] of Object.entries(answer.parameters ?? {})) facts.push(`${key.replaceAll("_", " ")} ${value}`);
  const nodes = [element("p", { class: "asked soft small" }, ...facts.map((f) => element("span", {}, f)))];
  for (const output of answer.outputs) {
    nodes.push(element("h3", {}, titles[output.name] ?? output.name.replaceAll("_", " ")), ...outputNodes(output, outputs.find((o) => o.name === output.name), about, evidence, target));
  }
  nodes.push(element("details", {}, element("summary", {}, "The same with curl"), element("pre", { tabindex: "0" }, command)));
  return nodes;
}
