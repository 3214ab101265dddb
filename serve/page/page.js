// The page of a pce server: models, how they do, and a form to ask them.

import * as api from "./api.js";
import { Evidence } from "./evidence.js";
import { element, Live, parse } from "./live.js";
import { answerNodes, numbers } from "./show.js";

const find = (id) => document.getElementById(id);
const MOST_CELLS = 1 << 21; // of an output that is asked for without need
const LOOK = 2000; // milliseconds between looks at the metrics

const live = new Live(find("models"));
const evidence = new Evidence(find("evidence"));
let about = null; // metadata of the chosen model
let life; // when the server began

function health(text, kind) {
  const pill = find("health");
  if (pill.textContent !== text) pill.textContent = text;
  pill.className = `pill ${kind}`;
}

// The token is asked for before the first request, and again when it is refused.

let entered = null; // a promise while the dialog is open

function askToken(problem) {
  entered ??= new Promise((resolve) => {
    const dialog = find("token-dialog");
    const line = find("token-problem");
    line.textContent = problem;
    line.hidden = problem === "";
    const again = () => dialog.showModal(); // nothing works without a token
    dialog.addEventListener("close", again);
    find("token-form").addEventListener("submit", (event) => {
      event.preventDefault();
      api.setToken(find("token").value.trim());
      find("token").value = "";
      dialog.removeEventListener("close", again);
      dialog.close();
      entered = null;
      resolve();
    }, { once: true });
    dialog.showModal();
  });
  return entered;
}

// authorized makes requests, and asks for another token when one is refused.
async function authorized(work) {
  for (;;) {
    try {
      return await work();
    } catch (err) {
      if (!(err instanceof api.Refusal) || err.status !== 401) throw err;
      await askToken(api.hasToken() ? "The server refused this token." : "");
    }
  }
}

// look shows the state of all models, now and every two seconds while the page is seen.
async function look() {
  if (!document.hidden) {
    try {
      const [ready, index, metrics] = await authorized(() => Promise.all([api.ready(), api.models(), api.text("metrics")]));
      live.update(index, metrics, performance.now());
      life = parse(metrics).find((s) => s.name === "pce_server_start_time_seconds")?.value;
      health(ready ? "ready" : "not ready", ready ? "good" : "");
      await offer(index);
      await renew(index.find((m) => m.name === about?.name)?.version);
    } catch (err) {
      health(err instanceof api.Refusal ? err.message : "no answer from the server", "bad");
    }
  }
  setTimeout(look, LOOK);
}

// offer keeps the list of models that can be asked.
async function offer(index) {
  const select = find("model");
  const names = index.map((m) => m.name);
  if (names.join("\n") === [...select.options].map((o) => o.value).join("\n")) return;
  const chosen = select.value;
  select.replaceChildren(...names.map((n) => element("option", { value: n }, n)));
  if (names.includes(chosen)) select.value = chosen;
  else await choose();
}

// metadata reads that of a model, with the life of the server that gave it: in each of them versions count from 1.
async function metadata(name) {
  return { ...await authorized(() => api.metadata(name)), life };
}

async function choose() {
  const name = find("model").value;
  about = null;
  find("ask").disabled = find("draw").disabled = find("clear").disabled = true;
  if (!name) return;
  try {
    const got = await metadata(name);
    if (find("model").value === name) describe(got);
  } catch (err) {
    problem(err.message);
  }
}

// describe makes the form of the chosen model, with a row that is empty.
function describe(model) {
  about = model;
  evidence.model(about);
  const columns = evidence.columns.length;
  find("about").textContent = about.image ? `Images of ${about.image[0]} × ${about.image[1]} pixels.` : `Rows of ${columns} ${columns === 1 ? "column" : "columns"}.`;
  find("query").replaceChildren(...about.queries.map((q) => element("option", { value: q.name }, q.name.replaceAll("_", " "))));
  parameters();
  find("draw").hidden = !about.queries.some((q) => q.name === "sample");
  find("ask").disabled = find("draw").disabled = find("clear").disabled = false;
  find("answer").replaceChildren(element("p", { class: "soft empty" }, "The answer appears here."));
}

// renew reads the metadata anew where another version of the chosen model is served, or by another server, whose columns and labels may be
// others. The form and what was entered stay if they are not.
async function renew(version) {
  const before = about;
  if (!version || !before || (version === before.versions[0] && life === before.life)) return;
  const got = await metadata(before.name);
  if (about !== before) return; // another model was chosen meanwhile
  const form = (m) => JSON.stringify([m.columns, m.image, m.queries]);
  if (form(got) === form(before)) {
    about = got;
    return;
  }
  const chosen = find("query").value;
  describe(got);
  if (!got.queries.some((q) => q.name === chosen)) return;
  find("query").value = chosen;
  parameters();
}

// infer asks the chosen model, and returns the answer with the metadata of the version that gave it: that of another version, which may be
// shown by now, has other labels.
async function infer(asked) {
  const model = about;
  const answer = await authorized(() => api.infer(model.name, asked));
  if (about === model) await renew(answer.model_version);
  const gave = [about, model].find((m) => m?.name === model.name && m.versions[0] === answer.model_version);
  if (!gave) throw new Error(`The answer is of version ${answer.model_version}, which was replaced meanwhile. Ask for another one.`);
  return [answer, gave];
}

const query = () => about.queries.find((q) => q.name === find("query").value);

// parameters makes a field for each parameter and each further input of the query.
function parameters() {
  const fields = [];
  const field = (id, label, input, help, kind = "field") => {
    input.id = id;
    if (help) input.title = help;
    fields.push(element("div", { class: kind }, element("label", { for: id }, label), input));
  };
  for (const p of query().parameters ?? []) {
    const kind = typeof p.default;
    if (p.values) {
      const select = element("select", {}, ...p.values.map((v) => element("option", { value: v }, v)));
      if (p.values.includes(p.default)) select.value = p.default;
      field(`parameter-${p.name}`, p.name.replaceAll("_", " "), select);
      continue;
    }
    const input = element("input", { type: kind === "boolean" ? "checkbox" : "text", autocomplete: "off" });
    if (kind === "boolean") input.checked = p.default;
    else {
      if (kind !== "string") input.inputMode = "numeric";
      input.value = query().name === "sample" && p.name === "n_samples" ? Math.min(8, p.max ?? 8) : p.default ?? "";
      if (p.default === null) input.placeholder = "drawn";
    }
    field(`parameter-${p.name}`, p.name.replaceAll("_", " "), input, p.max ? `${p.min ?? 0} to ${p.max}` : "");
  }
  for (const t of query().inputs.slice(2)) {
    const id = `input-${t.name}`;
    const label = t.name.replaceAll("_", " ");
    if (evidence.marks(t) && about.image) {
      const parts = [...find("keep").options].filter((o) => o.value !== "none");
      field(id, label, element("select", {}, ...parts.map((o) => element("option", { value: o.value }, o.textContent))), "", "field whole");
    } else if (evidence.marks(t)) {
      field(id, `${label}: columns, by name or number`, element("input", { type: "text", autocomplete: "off", placeholder: evidence.columns[0].name }), "", "field whole");
    } else {
      field(id, `${label} (${t.datatype}, ${t.shape.slice(1).join(" × ") || "one"}${t.parameters?.optional ? ", optional" : ""})`,
        element("input", { type: "text", autocomplete: "off", placeholder: "numbers, separated by commas; empty ones say nothing" }), "", "field whole");
    }
  }
  find("parameters").replaceChildren(...fields);
}

// request is what the form asks.
function request() {
  const q = query();
  // Outputs that are given on request are asked for too, unless they are very large.
  const outputs = q.outputs.filter((o) => Math.abs(o.shape.reduce((n, d) => n * d, 1)) <= MOST_CELLS);
  const r = { parameters: { query: q.name }, inputs: q.inputs.some((t) => t.name === "x") ? [evidence.tensor()] : [], outputs: outputs.map((o) => ({ name: o.name })) };
  for (const p of q.parameters ?? []) {
    const input = find(`parameter-${p.name}`);
    if (typeof p.default === "boolean") r.parameters[p.name] = input.checked;
    else if (input.value.trim() !== "") r.parameters[p.name] = typeof p.default === "string" ? input.value : numeric(p.name, input.value);
  }
  for (const t of q.inputs.slice(2)) {
    const text = find(`input-${t.name}`).value.trim();
    if (text === "") continue;
    if (evidence.marks(t)) {
      r.inputs.push({ name: t.name, datatype: "BOOL", shape: [1, evidence.columns.length], data: evidence.marked(text) });
      continue;
    }
    const data = text.split(",").map((x) => (x.trim() === "" ? null : numeric(t.name, x))); // an empty one says nothing
    r.inputs.push({ name: t.name, datatype: "FP64", shape: t.shape.map(Math.abs), data }); // of one row, which is -1 there
  }
  return r;
}

function numeric(name, text) {
  const x = Number(text);
  if (text.trim() === "" || !Number.isFinite(x)) throw new Error(`${name.replaceAll("_", " ")}: “${text}” is not a number.`);
  return x;
}

function problem(text) {
  find("answer").replaceChildren(element("p", { class: "problem", role: "alert" }, text));
}

async function ask(event) {
  event.preventDefault();
  if (!about) return;
  const panel = find("answer");
  panel.setAttribute("aria-busy", "true");
  find("ask").disabled = true;
  try {
    if (evidence.problem()) throw new Error(evidence.problem());
    const [asked, row, name] = [request(), [...evidence.cells], find("query").selectedOptions[0].textContent];
    const from = performance.now();
    const [answer, model] = await infer(asked);
    panel.replaceChildren(...answerNodes(answer, model, row, asked, name, (performance.now() - from) / 1000, api.curl(model.name, asked)));
  } catch (err) {
    problem(err.message);
  } finally {
    find("ask").disabled = false;
    panel.setAttribute("aria-busy", "false");
  }
}

// draw takes a row of the model as evidence.
async function draw() {
  try {
    const [answer, model] = await infer({ parameters: { query: "sample", n_samples: 1 } });
    if (model !== about) throw new Error("The drawn row is of a model or version that is not shown by now. Draw another one.");
    evidence.setNumbers(numbers(answer.outputs[0]));
  } catch (err) {
    problem(err.message);
  }
}

async function start() {
  find("model").addEventListener("change", choose);
  find("query").addEventListener("change", parameters);
  find("form").addEventListener("submit", ask);
  find("draw").addEventListener("click", draw);
  find("clear").addEventListener("click", () => evidence.model(about));
  if (document.querySelector("meta[name=pce-token]").content === "needed") await askToken("");
  try {
    const server = await authorized(api.server);
    find("version").textContent = server.version;
    document.title = `pce on ${location.host}`;
  } catch (err) {
    health(err instanceof api.Refusal ? err.message : "no answer from the server", "bad");
  }
  await look();
}

start();
