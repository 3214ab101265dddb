// Requests to the server that the page came from.

let token = "";

// Refusal is an answer that is not 200; its message is the server's line.
export class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// setToken keeps the server's token in memory; it is gone when the page is.
export function setToken(text) {
  token = text;
}

export function hasToken() {
  return token !== "";
}

async function call(path, options = {}) {
  const headers = new Headers(options.headers);
  if (token) headers.set("Authorization", `Bearer ${token}`);
  // Paths are relative to the page, which a proxy may show under a path of its own.
  const response = await fetch(path, { ...options, headers, cache: "no-store", credentials: "omit" });
  if (response.ok) return response;
  let line = `${response.status} ${response.statusText}`;
  try {
    line = JSON.parse(await response.text()).error ?? line;
  } catch {
    // Something in between answered, and not in JSON.
  }
  throw new Refusal(response.status, line);
}

export const json = async (path, options) => (await call(path, options)).json();
export const text = async (path) => (await call(path)).text();

const post = (body) => ({ method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });

export const server = () => json("v2");
export const models = () => json("v2/repository/index", post({}));
export const metadata = (model) => json(`v2/models/${encodeURIComponent(model)}`);
export const infer = (model, request) => json(`v2/models/${encodeURIComponent(model)}/infer`, post(request));

// ready says whether the server is; it throws if the server does not answer.
export async function ready() {
  try {
    await call("v2/health/ready");
    return true;
  } catch (err) {
    if (err instanceof Refusal && err.status === 503) return false;
    throw err;
  }
}

// curl is a command that sends the same request.
export function curl(model, request) {
  const quoted = JSON.stringify(request).replaceAll("'", "'\\''");
  const auth = token ? ` -H "Authorization: Bearer $TOKEN"` : "";
  return `curl -s ${new URL(`v2/models/${encodeURIComponent(model)}/infer`, document.baseURI)}${auth} -d '${quoted}'`;
}
