// The last verification of the trail, by the server or by this browser; what it says about every row stays
// at hand while one goes from page to page.

import { signal } from "./vendor/preact.js";
import { follow, send, session } from "./api.js";
import { canVerify, rowState } from "./verify.js";

/** {by: "server" | "browser", at, result} of the last verification that ended, or null. */
export const lastCheck = signal(null);
/** {by, done, total} while one is under way, or null. */
export const checking = signal(null);
/** What kept the last one from ending, or null. */
export const checkProblem = signal(null);

const slot = (name) => `holdfast.${name}:${session.value?.store ?? ""}`;

function read(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(slot(name))) ?? otherwise;
  } catch {
    return otherwise;
  }
}

function write(name, value) {
  if (value === null) localStorage.removeItem(slot(name));
  else localStorage.setItem(slot(name), JSON.stringify(value));
}

/** Public keys that whoever sits here was given by another way than through the server. */
export const ownKeys = { read: () => read("keys", []), write: (keys) => write("keys", keys.length ? keys
  : null) };

/** The head that this browser verified last: the log must go on from there. */
export const ownPin = { read: () => read("pin", null), forget: () => write("pin", null) };

async function run(by, work) {
  checking.value = { by, done: 0, total: 0 };
  checkProblem.value = null;
  try {
    lastCheck.value = { by, at: new Date().toISOString(), result: await work() };
  } catch (problem) {
    checkProblem.value = problem;
  } finally {
    checking.value = null;
  }
}

const step = (by) => ({ done, total }) => {
  checking.value = { by, done, total };
};

export function verifyOnServer() {
  return run("server", async () => {
    let told = await send("POST", "/audit/verify", {});
    if (told.verdict === undefined) told = (await follow(told, (state) =>
      step("server")(state.progress))).result;
    const lines = told.faults.filter((fault) => fault.index !== null && ["entry", "tile",
      "payload"].includes(fault.kind));
    const places = (isMissing) =>
      lines.filter((fault) => fault.problem.includes("is not there") === isMissing).map((fault) => fault.index);
    return {
      ...told,
      checked: told.size,
      faultCount: told.fault_count,
      broken: places(false),
      missing: places(true),
      signature: null,
    };
  });
}

/** Verify here, in a worker, believing nothing but the bytes. */
export function verifyInBrowser() {
  return run("browser", async () => {
    if (!canVerify()) throw insecure();
    const pin = ownPin.read();
    const result = await inWorker({ keys: ownKeys.read(), pins: pin ? [pin] : [] });
    if (result.verdict !== "failed" && result.checked && result.origin) {
      write("pin", { origin: result.origin, size: result.checked, root: result.root,
        at: new Date().toISOString() });
    }
    return { ...result, pin };
  });
}

function insecure() {
  return Object.assign(new Error("This browser does not let this page compute hashes."), {
    hint: "Browsers allow that to pages from this machine and over HTTPS only. Serve with --tls-cert, or verify with: holdfast audit verify",
    code: "no_web_crypto",
  });
}

function inWorker(trust) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL("./verify_worker.js", import.meta.url), { type: "module" });
    const end = (settle, value) => {
      worker.terminate();
      settle(value);
    };
    worker.onerror = () => end(reject, new Error("The worker that verifies could not be started."));
    worker.onmessage = ({ data }) => {
      if (data.progress) step("browser")(data.progress);
      else if (data.error) end(reject, Object.assign(new Error(data.error), { code: "verify_failed" }));
      else end(resolve, data.result);
    };
    worker.postMessage({ trust });
  });
}

/** What is known about a row of the list: verified, broken, missing, unanchored, or unchecked. */
export function stateOf(row) {
  if (row.isMissing) return "missing";
  if (row.problem) return "broken";
  const state = rowState(lastCheck.value?.result, row.index);
  return state === "unchecked" && !row.is_anchored ? "unanchored" : state;
}
