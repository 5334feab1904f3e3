// Addresses: what follows the # names a page, and what it shows. Everything that is shown can be linked to.

import { signal } from "./vendor/preact.js";

/** Where the page is: {path, query}. */
export const place = signal(read());

function read() {
  const text = location.hash.replace(/^#/, "") || "/";
  const [path, search] = split(text, "?");
  return { path: path.startsWith("/") ? path : "/", query: Object.fromEntries(new URLSearchParams(search)) };
}

function split(text, mark) {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

addEventListener("hashchange", () => { place.value = read(); });

/** Encode a name so that it is one step of an address, whatever is in it. */
export function step(name) {
  return encodeURIComponent(String(name)).replaceAll(".", "%2E");
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Write an address: a path that is already encoded, and what it asks for. */
export function address(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null &&
    value !== "");
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `#${path}${search ? `?${search}` : ""}`;
}

/** The addresses of all pages. */
export const to = {
  home: () => "#/",
  runs: (query) => address("/runs", query),
  run: (id, tab, query = {}) => address(`/runs/${step(id)}`,
    { tab: tab === "timeline" ? "" : tab, ...query }),
  checkpoint: (id, query) => address(`/checkpoints/${step(id)}`, query),
  diff: (from, until, query) => address(`/diff/${step(from)}..${step(until)}`, query),
  audit: (query) => address("/audit", query),
  entry: (index) => address(`/audit/${step(index)}`),
  storage: () => "#/storage",
  quarantine: (query) => address("/quarantine", query),
  stats: () => "#/stats",
  search: (q) => address("/search", { q }),
  about: () => "#/about",
};

export function go(href) {
  location.hash = href.replace(/^#/, "");
}

/** Change what the page asks for, without a new step in the history. */
export function ask(changes) {
  const href = address(place.value.path, { ...place.value.query, ...changes });
  history.replaceState(null, "", href);
  place.value = read();
}

/** Match a path with a pattern like `/runs/:id` or `/diff/:from..:until`; null if it is another. */
export function match(pattern, path) {
  const wanted = pattern.split("/"), given = path.split("/");
  if (wanted.length !== given.length) return null;
  const params = {};
  for (let at = 0; at < wanted.length; at++) {
    const names = wanted[at].split("..");
    if (!names[0].startsWith(":")) {
      if (wanted[at] !== given[at]) return null;
      continue;
    }
    const values = names.length === 1 ? [given[at]] : given[at].split("..");
    if (values.length !== names.length || values.some((value) => !value)) return null;
    names.forEach((name, which) => { params[name.slice(1)] = decoded(values[which]); });
  }
  return params;
}
