// The row that questions are about: cells as texts, in which "" is missing.

import { element } from "./live.js";
import { paint } from "./show.js";

const MOST_FIELDS = 200; // columns that get a field each

// rowText writes cells as a row of a CSV file. Blanks around a cell are quoted, since
// cellsOf takes those that are not for layout.
function rowText(cells) {
  return cells.map((c) => (/[",\r\n]|^\s|\s$/.test(c) ? `"${c.replaceAll('"', '""')}"` : c)).join(",");
}

// cellsOf reads a row of a CSV file.
function cellsOf(text) {
  const cells = [];
  for (const [, quoted, plain] of `,${text}`.matchAll(/,(?:\s*"((?:[^"]|"")*)"\s*(?=,|$)|([^,]*))/g)) {
    cells.push(quoted === undefined ? plain.trim() : quoted.replaceAll('""', '"'));
  }
  return cells;
}

// columnsOf lists every column of a model; the metadata joins those that are alike.
export function columnsOf(about) {
  const list = [];
  for (const c of about.columns) {
    for (let i = 0; i < (c.repeat ?? 1); i++) list.push({ ...c, name: c.name || `column ${list.length + 1}` });
  }
  return list;
}

// textOf is the text of a number that the server gave for a cell.
export function textOf(column, x) {
  if (!Number.isFinite(x)) return "";
  const label = column.numeric ? column.labels.find((l) => Number(l) === x) : column.labels?.[x];
  return label ?? String(x);
}

export class Evidence {
  constructor(root) {
    const find = (id) => root.querySelector(`#${id}`);
    this.picture = find("picture");
    this.canvas = find("canvas");
    this.keep = find("keep");
    this.fields = find("fields");
    this.row = find("row");
    this.keep.addEventListener("change", () => this.mask());
    this.row.addEventListener("change", () => this.setRow(this.row.value));
    const hide = (event) => {
      if (event.buttons & 1) this.hide(event);
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      hide(event);
    });
    this.canvas.addEventListener("pointermove", hide);
    this.canvas.addEventListener("pointerup", () => this.writeRow());
  }

  // model sets the model that rows are of; they begin empty.
  model(about) {
    this.about = about;
    this.columns = columnsOf(about);
    this.image = about.image ?? null;
    this.picture.hidden = !this.image;
    this.fields.hidden = Boolean(this.image) || this.columns.length > MOST_FIELDS;
    this.inputs = [];
    this.fields.replaceChildren();
    if (!this.fields.hidden) this.columns.forEach((c, i) => this.fields.append(this.field(c, i)));
    document.getElementById("text-details").open = !this.image && this.fields.hidden;
    this.setCells(new Array(this.columns.length).fill(""));
  }

  field(column, i) {
    const id = `cell-${i}`;
    let input;
    if (column.labels && column.labels.length <= 100) {
      input = element("select", { id }, element("option", { value: "" }, "missing"));
      for (const label of column.labels) input.append(element("option", { value: label }, label));
    } else {
      input = element("input", { id, inputmode: column.kind === "continuous" ? "decimal" : "text", placeholder: "missing", autocomplete: "off" });
      if (column.kind !== "continuous" && !column.labels) input.title = `0 to ${column.categories - 1}`;
    }
    input.addEventListener("change", () => {
      this.full[i] = this.cells[i] = column.labels ? input.value : input.value.trim(); // blanks are part of a label
      this.writeRow();
    });
    this.inputs.push(input);
    return element("div", { class: "field" }, element("label", { for: id }, column.name), input);
  }

  // setCells sets the whole row.
  setCells(cells) {
    this.full = [...cells];
    if (this.image && cells.every((c) => c === "")) this.keep.value = "all";
    this.mask();
  }

  // setNumbers sets the row from numbers that the server gave.
  setNumbers(numbers) {
    this.setCells(numbers.map((x, i) => textOf(this.columns[i], x)));
  }

  setRow(text) {
    const cells = text.trim() === "" ? new Array(this.columns.length).fill("") : cellsOf(text);
    this.row.setAttribute("aria-invalid", String(cells.length !== this.columns.length));
    this.row.setCustomValidity(cells.length === this.columns.length ? "" : `The row has ${cells.length} cells; the model has ${this.columns.length} columns.`);
    if (cells.length !== this.columns.length) {
      this.row.reportValidity();
      return;
    }
    this.keep.value = "all";
    this.setCells(cells);
  }

  // problem says what is wrong with the text of the row, or "".
  problem() {
    return this.row.validationMessage;
  }

  mask() {
    const kept = this.image ? this.part(this.keep.value) : this.full.map(() => true);
    this.cells = this.full.map((c, i) => (kept[i] ? c : ""));
    this.writeRow();
  }

  // part says of each cell of an image whether it is in a part of it.
  part(name) {
    const [height, width, channels] = this.image;
    const within = {
      all: () => true, none: () => false, top: (x, y) => y < height / 2, bottom: (x, y) => y >= height / 2,
      left: (x) => x < width / 2, right: (x) => x >= width / 2,
    }[name];
    return this.columns.map((_, i) => {
      const at = Math.floor(i / channels);
      return within(at % width, Math.floor(at / width));
    });
  }

  // marks reports whether an input of a query marks columns.
  marks(input) {
    return input.datatype === "BOOL" && input.shape.length === 2 && input.shape[1] === this.columns.length;
  }

  // marked is such an input: of an image the name of a part, else a list of columns.
  marked(text) {
    if (this.image) return this.part(text);
    const marks = this.columns.map(() => false);
    for (const name of cellsOf(text)) marks[this.find(name)] = true;
    return marks;
  }

  // find returns the place of a column that is named, or numbered from 1.
  find(name) {
    const at = this.columns.findIndex((c) => c.name === name);
    const i = at >= 0 ? at : /^\d+$/.test(name) ? Number(name) - 1 : -1;
    if (!(i >= 0 && i < this.columns.length)) throw new Error(`“${name}” is not a column; they are ${this.columns.slice(0, 20).map((c) => c.name).join(", ")}.`);
    return i;
  }

  // hide makes the pixels around the pointer missing.
  hide(event) {
    const [height, width, channels] = this.image;
    const box = this.canvas.getBoundingClientRect();
    const x = Math.floor(((event.clientX - box.left) / box.width) * width);
    const y = Math.floor(((event.clientY - box.top) / box.height) * height);
    const reach = Math.max(1, Math.round(width / 20));
    for (let j = Math.max(0, y - reach); j <= Math.min(height - 1, y + reach); j++) {
      for (let i = Math.max(0, x - reach); i <= Math.min(width - 1, x + reach); i++) {
        for (let c = 0; c < channels; c++) this.cells[(j * width + i) * channels + c] = "";
      }
    }
    this.show();
  }

  writeRow() {
    this.row.value = this.cells.some((c) => c !== "") ? rowText(this.cells) : "";
    this.row.setCustomValidity("");
    this.row.setAttribute("aria-invalid", "false");
    this.inputs.forEach((input, i) => {
      input.value = this.cells[i];
    });
    this.show();
  }

  show() {
    if (this.image) paint(this.canvas, this.about, this.cells.map((c) => (c === "" ? NaN : Number(c))), { missing: true });
  }

  // tensor is the row as an input of a request: texts, as in a CSV file.
  tensor() {
    return { name: "x", shape: [1, this.columns.length], datatype: "BYTES", data: this.cells };
  }
}
