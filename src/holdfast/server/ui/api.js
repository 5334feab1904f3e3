// Asking the server. What a component needs:
//
//   path`/runs/${id}/graph`          a path whose names are encoded
//   get(path, {query, signal})       JSON of a GET; what did not change is not sent again
//   prefetch(path, query)            begin a get that is about to be asked for
//   getText(path, {query, accept})   the same as text
//   send(method, path, body)         POST, PATCH, DELETE: with the page's key against forgery and a key
//                                    that makes a repeated request harmless
//   follow(operation, onProgress)    wait until long work (202) has ended
//   useGet(path, {query, when, live})    hook: {data, problem, isLoading, reload}; live: true or
//                                    (event) => bool asks again after events of the store that matter
//   usePages(path, {query, limit, live}) hook for listings: {items, problem, isLoading, hasMore, more,
//                                    reload}
//   session                          signal: {name, scopes, csrf, store, is_read_only, version} or null
//   may(scope), whyNot(...scopes)    whether whoever is signed in may do something, and if not, why
//
// What goes wrong is an ApiError with the words of the server: message, hint, code, status, place,
// request_id, errors, candidates.

import { signal, useCallback, useEffect, useRef, useState } from "./vendor/preact.js";
import { onEvents } from "./live.js";

export const session = signal(null);

const KNOWN_MAX = 60;
const known = new Map();

/** What the server refused, or that it cannot be reached. */
export class ApiError extends Error {
  constructor(status, problem = {}) {
    super(problem.detail || problem.title || "the server cannot be reached");
    this.status = status;
    this.code = problem.code || (status ? `status_${status}` : "unreachable");
    this.hint = problem.hint || (status ? "" : "Look whether holdfast serve still runs.");
    this.place = problem.place || "";
    this.request_id = problem.request_id || "";
    this.errors = problem.errors || [];
    this.candidates = problem.candidates || [];
  }
}

export function path(texts, ...names) {
  return texts.reduce((whole, text, at) => whole + encodeURIComponent(String(names[at - 1])) + text);
}

function url(where, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null &&
    value !== "");
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `/v1${where}${search ? `?${search}` : ""}`;
}

async function ask(address, options) {
  let response;
  try {
    response = await fetch(address, { credentials: "same-origin", ...options });
  } catch (fault) {
    if (fault.name === "AbortError") throw fault;
    throw new ApiError(0);
  }
  if (response.ok || response.status === 304) return response;
  const problem = await response.json().catch(() => ({}));
  if (response.status === 401 && session.value) session.value = null;
  throw new ApiError(response.status, problem);
}

const early = new Map();

export function prefetch(where, query = {}) {
  const address = url(where, query);
  if (early.has(address)) return;
  const promise = fetched(address, undefined);
  promise.catch(() => {});
  early.set(address, promise);
}

export async function get(where, { query, signal: abort } = {}) {
  const address = url(where, query);
  const begun = early.get(address);
  early.delete(address);
  return begun || fetched(address, abort);
}

async function fetched(address, abort) {
  const before = known.get(address);
  const headers = { Accept: "application/json" };
  if (before) headers["If-None-Match"] = before.etag;
  const response = await ask(address, { headers, signal: abort });
  if (response.status === 304 && before) return before.data;
  const data = await response.json();
  remember(address, response.headers.get("ETag"), data);
  return data;
}

function remember(address, etag, data) {
  known.delete(address);
  if (!etag) return;
  known.set(address, { etag, data });
  if (known.size > KNOWN_MAX) known.delete(known.keys().next().value);
}

export async function getText(where, { query, accept = "text/plain", signal: abort } = {}) {
  const response = await ask(url(where, query), { headers: { Accept: accept }, signal: abort });
  return response.text();
}

/** Ask for a change; the answer's JSON, or null where there is none. */
export async function send(method, where, body, { query, signal: abort, key, headers: more } = {}) {
  const headers = {
    "Content-Type": "application/json",
    "Idempotency-Key": key || crypto.randomUUID(),
    ...(session.value?.csrf ? { "X-Holdfast-CSRF": session.value.csrf } : {}),
    ...more,
  };
  const content = body === undefined ? undefined : JSON.stringify(body);
  const response = await ask(url(where, query), { method, headers, body: content, signal: abort });
  const text = response.status === 204 ? "" : await response.text();
  return text ? JSON.parse(text) : null;
}

/** Wait until an operation has ended; tells each step; throws what it failed with. */
export async function follow(operation, onProgress = () => {}, abort = undefined) {
  let wait = 150;
  let state = operation;
  while (state.status === "waiting" || state.status === "running") {
    onProgress(state);
    await new Promise((done) => setTimeout(done, wait));
    if (abort?.aborted) throw new DOMException("no longer wanted", "AbortError");
    wait = Math.min(wait * 1.5, 2000);
    state = await get(path`/operations/${state.id}`, { signal: abort });
  }
  onProgress(state);
  if (state.status === "failed") throw new ApiError(409, state.problem || { detail: "the operation failed" });
  return state;
}

export async function signIn(token) {
  known.clear();
  early.clear();
  session.value = await send("POST", "/session", { token });
}

export async function signOut() {
  await send("DELETE", "/session").catch(() => null);
  session.value = null;
}

export function may(scope) {
  const who = session.value;
  if (!who) return false;
  if (who.is_read_only && !READING.has(scope)) return false;
  return !scope || who.scopes.includes(scope) || who.scopes.includes("admin");
}

const READING = new Set([undefined, "", "read", "state:read", "audit:read", "audit:export", "metrics"]);

export function whyNot(...scopes) {
  const missing = [...new Set(scopes)].filter((scope) => !may(scope));
  if (!missing.length) return "";
  if (session.value?.is_read_only && !missing.some((scope) => READING.has(scope))) {
    return "This server only reads.";
  }
  const last = missing.pop();
  return missing.length ? `Your token lacks the scopes ${missing.join(", ")} and ${last}.`
    : `Your token lacks the scope ${last}.`;
}

const REST_MS_MIN = 1000;

/** Load again after events that matter; what takes long to load, or happens all the time, less often. */
function useReload(live, load) {
  const latest = useRef(null);
  latest.current = { load, isWanted: typeof live === "function" ? live : () => true };
  useEffect(() => {
    if (!live) return undefined;
    let timer = 0, restMs = 0, lastAt = 0;
    const again = async () => {
      const begin = performance.now();
      await latest.current.load();
      timer = 0;
      lastAt = performance.now();
      restMs = Math.max(REST_MS_MIN, 4 * (lastAt - begin));
    };
    const stop = onEvents((events) => {
      if (timer || !events.some((event) => event === null || latest.current.isWanted(event))) return;
      timer = setTimeout(again, Math.max(0, lastAt + restMs - performance.now()));
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [Boolean(live)]);
}

export function useGet(where, { query = {}, when = true, live = false } = {}) {
  const [state, setState] = useState({ data: undefined, problem: null, isLoading: true, key: "" });
  const key = when ? url(where, query) : "";
  const current = useRef(null);
  const load = useCallback(async () => {
    if (!key) return;
    current.current?.abort();
    const mine = new AbortController();
    current.current = mine;
    setState((old) => ({ ...old, data: old.key === key ? old.data : undefined, key, isLoading: true }));
    try {
      const data = await get(where, { query, signal: mine.signal });
      if (!mine.signal.aborted) setState({ data, problem: null, isLoading: false, key });
    } catch (problem) {
      if (problem.name === "AbortError" || mine.signal.aborted) return;
      setState((old) => ({ ...old, problem, isLoading: false, key }));
    }
  }, [key]);
  useEffect(() => {
    load();
    return () => current.current?.abort();
  }, [load]);
  useReload(live, load);
  const isOther = state.key !== key;
  return { data: isOther ? undefined : state.data, problem: isOther ? null : state.problem,
    isLoading: isOther || state.isLoading, reload: load };
}

export function usePages(where, { query = {}, limit = 100, when = true, live = false } = {}) {
  const empty = { items: [], next: null, problem: null, isLoading: true };
  const [state, setState] = useState(empty);
  const key = when ? url(where, { ...query, limit }) : "";
  const current = useRef(null);
  const count = useRef(0);
  const load = useCallback(async (cursor, atLeast) => {
    if (!key) return;
    current.current?.abort();
    const mine = new AbortController();
    current.current = mine;
    setState((old) => ({ ...old, isLoading: true }));
    try {
      let page = await get(where, { query: { ...query, limit, cursor }, signal: mine.signal });
      let found = page.items;
      // Listed anew: as much as was there, so that nothing jumps.
      while (page.next_cursor && found.length < atLeast) {
        page = await get(where, { query: { ...query, limit, cursor: page.next_cursor }, signal:
          mine.signal });
        found = found.concat(page.items);
      }
      if (mine.signal.aborted) return;
      setState((old) => {
        const items = cursor ? old.items.concat(found) : found;
        count.current = items.length;
        return { items, next: page.next_cursor ?? null, problem: null, isLoading: false };
      });
    } catch (problem) {
      if (problem.name === "AbortError" || mine.signal.aborted) return;
      setState((old) => ({ ...old, problem, isLoading: false }));
    }
  }, [key]);
  useEffect(() => {
    setState(empty);
    count.current = 0;
    load(undefined, 0);
    return () => current.current?.abort();
  }, [load]);
  const reload = useCallback(() => load(undefined, Math.min(count.current, 1000)), [load]);
  useReload(live, reload);
  const more = () => { if (state.next && !state.isLoading) load(state.next, 0); };
  return { items: state.items, problem: state.problem, isLoading: state.isLoading, hasMore:
    Boolean(state.next),
    more, reload };
}
