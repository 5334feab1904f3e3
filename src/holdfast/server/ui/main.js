// The page as a whole: signing in, the frame, and which page an address means.

import { effect, html, render, signal, useEffect, useErrorBoundary, useRef, useState } from "./vendor/preact.js";
import { get, session, signIn, signOut } from "./api.js";
import { HELP, useKeys } from "./keys.js";
import { begin, end, live, togglePause, whenRefused } from "./live.js";
import { Button, Dialog, Empty, Icon, Layer, Page, Problem, Skeleton, closeDialog, nextTheme, showDialog,
  showTheme, spanText, theme, useCurrentInView } from "./parts.js";
import { go, match, place, to } from "./router.js";
import SignIn from "./pages/sign_in.js";

const ROUTES = [
  { pattern: "/", load: () => import("./pages/home.js") },
  { pattern: "/runs", load: () => import("./pages/runs.js") },
  { pattern: "/runs/:id", load: () => import("./pages/run.js") },
  { pattern: "/checkpoints/:id", load: () => import("./pages/checkpoint.js") },
  { pattern: "/diff/:from..:until", load: () => import("./pages/diff.js") },
  { pattern: "/audit", load: () => import("./pages/audit.js") },
  { pattern: "/audit/:index", load: () => import("./pages/audit_entry.js") },
  { pattern: "/storage", load: () => import("./pages/storage.js") },
  { pattern: "/quarantine", load: () => import("./pages/quarantine.js") },
  { pattern: "/stats", load: () => import("./pages/stats.js") },
  { pattern: "/search", load: () => import("./pages/search.js") },
  { pattern: "/about", load: () => import("./pages/about.js") },
];

const NAV = [
  ["/", "Needs you", "home"], ["/runs", "Runs", "runs"], ["/audit", "Audit trail", "audit"],
  ["/quarantine", "Quarantine", "box"], ["/storage", "Storage", "storage"], ["/stats", "Statistics", "chart"],
  ["/about", "About", "info"],
];

const loaded = new Map();
/** Why the last key or token was refused, or null. */
const refusal = signal(null);

function routeOf(path) {
  for (const route of ROUTES) {
    const params = match(route.pattern, path);
    if (params) return { route, params };
  }
  return null;
}

function useRoute(route) {
  const [, again] = useState(0);
  const [problem, setProblem] = useState(null);
  useEffect(() => {
    setProblem(null);
    if (!route || loaded.has(route.pattern)) return;
    route.load().then(
      (module) => { loaded.set(route.pattern, module.default); again((count) => count + 1); },
      () => setProblem({ message: "This part of the page could not be loaded.", hint:
        "Look whether holdfast serve still runs, then try again.", code: "page_missing" }),
    );
  }, [route]);
  return { Component: route && loaded.get(route.pattern), problem };
}

function Outlet() {
  const { path, query } = place.value;
  const found = routeOf(path);
  const { Component, problem } = useRoute(found?.route);
  const before = useRef(path);
  const isThere = Boolean(Component);
  // A page that is fetched first gets the focus once it is there.
  useEffect(() => {
    if (before.current === path || (found && !isThere)) return;
    before.current = path;
    scrollTo(0, 0);
    document.querySelector("#content h1")?.focus({ preventScroll: true });
  }, [path, isThere]);
  if (!found) return html`<${Page} title="There is no such page"><${Empty} title="The address may be cut off"
    ><p><a href=${to.home()}>What needs you</a></p></${Empty}></${Page}>`;
  if (problem) return html`<${Problem} problem=${problem} retry=${() => location.reload()} />`;
  if (!Component) return html`<${Skeleton} lines=${8} />`;
  return html`<${Caught} key=${path}><${Component} params=${found.params} query=${query} /></${Caught}>`;
}

function Caught({ children }) {
  const [fault, reset] = useErrorBoundary((error) => console.error(error));
  if (!fault) return children;
  return html`<${Problem} problem=${{ message: "This page could not be drawn.", hint:
    String(fault.message || fault), code: "page_failed" }} retry=${reset} />`;
}

const LIVE = {
  off: ["quiet", "ring", "Not connected"], connecting: ["quiet", "retry", "Connecting"], live:
    ["ok", "check", "Live"],
  stale: ["warn", "warn", "Stale"], paused: ["violet", "pause", "Paused"],
};

function LiveMark() {
  const { state, since, held } = live.value;
  const [, again] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => again((count) => count + 1), 5000);
    return () => clearInterval(timer);
  }, []);
  const [tone, icon, word] = LIVE[state];
  const more = state === "stale" ? ` for ${spanText(Date.now() - since)}`
    : state === "paused" && held ? ` · ${held} new`
    : "";
  const action = state === "paused" ? "Go on with live updates" : "Pause live updates";
  return html`<button type="button" class="livemark ${tone}" data-testid="live" data-state=${state}
    title=${`${word}${more}. ${action} (p).`}
    aria-label=${`${word}${more}. ${action}`} onClick=${togglePause}><${Icon} name=${icon} /><span
      aria-live="polite">${word}${more}</span></button>`;
}

function Help({ onClose }) {
  return html`<${Dialog} title="Keys" onClose=${onClose}><dl
    class="keys">${HELP.map(([key, what]) => html`<div>
    <dt>${key.split(" ").map((one) =>
      (one === "/" && key.length > 1 ? " / " :
        html`<kbd>${one}</kbd>`))}</dt><dd>${what}</dd></div>`)}</dl></${Dialog}>`;
}

function SearchBox() {
  const input = useRef(null);
  useKeys({ "/": () => { input.current?.focus(); input.current?.select(); } });
  const submit = (event) => {
    event.preventDefault();
    const q = input.current.value.trim();
    if (q) { go(to.search(q)); input.current.blur(); }
  };
  const { path, query } = place.value;
  return html`<form class="searchbox" role="search" onSubmit=${submit}><${Icon} name="search" />
    <input ref=${input} type="search" name="q"
      aria-label="Search runs, checkpoints, hashes, agents, labels, errors" placeholder="Search"
      autocomplete="off" spellcheck=${false} value=${path === "/search" ? query.q || "" : ""}
      onKeyDown=${(event) => event.key === "Escape" && input.current.blur()} /><kbd
        aria-hidden="true">/</kbd></form>`;
}

function Top() {
  const word = { system: "as the system", light: "light", dark: "dark" }[theme.value];
  return html`<header class="top"><a class="brand" href=${to.home()}><img src="icon.svg" alt="" width="24"
    height="24" /><span>Holdfast</span></a>
    <${SearchBox} /><div class="top-right"><${LiveMark} />
      <button type="button" class="round" onClick=${nextTheme} aria-label=${`Colours: ${word}. Change`}
        title=${`Colours: ${word} (t)`}>
        <${Icon} name=${{ system: "screen", light: "sun", dark: "moon" }[theme.value]} /></button>
      <button type="button" class="round" onClick=${() => showDialog(Help)} aria-label="Keys"
        title="Keys (?)"><${Icon} name="question" /></button>
      <${Who} />
    </div></header>`;
}

/** Who is signed in; shut by Escape and by going on elsewhere, for it lies over the page. */
function Who() {
  const who = session.value;
  const card = useRef(null);
  const { path } = place.value;
  useEffect(() => { card.current.open = false; }, [path]);
  useEffect(() => {
    const shut = (event) => { if (!card.current.contains(event.target)) card.current.open = false; };
    addEventListener("pointerdown", shut);
    return () => removeEventListener("pointerdown", shut);
  }, []);
  const press = (event) => {
    if (event.key !== "Escape") return;
    card.current.open = false;
    card.current.querySelector("summary").focus();
  };
  return html`<details class="who" ref=${card} onKeyDown=${press}><summary
    aria-label=${`Signed in as ${who.name}`} title=${`Signed in as ${who.name}`}>
    ${who.name.slice(0, 1).toUpperCase()}</summary>
    <div class="who-card"><p><strong>${who.name}</strong></p><p
      class="muted">May: ${who.scopes.join(", ")}</p>
      ${who.is_read_only ? html`<p class="muted">This server only reads.</p>` : null}<${Button}
        onClick=${signOut}>Sign out</${Button}></div></details>`;
}

function Nav() {
  const { path } = place.value;
  const isHere = (at) => (at === "/" ? path === "/" : path === at || path.startsWith(`${at}/`) ||
    (at === "/runs" && (path.startsWith("/checkpoints") || path.startsWith("/diff"))));
  const list = useCurrentInView("[aria-current]", path);
  return html`<nav class="nav" aria-label="Pages" ref=${list}>${NAV.map(([at, label, icon]) =>
    html`<a href=${`#${at}`} aria-current=${isHere(at) ? "page" : null}>
    <${Icon} name=${icon} /><span>${label}</span></a>`)}
    <p class="nav-foot" title=${session.value.store}><span>${session.value.store}</span></p></nav>`;
}

function Frame() {
  useKeys({ "?": () => showDialog(Help), p: togglePause, t: nextTheme, "g h": () => go(to.home()), "g r":
    () => go(to.runs()),
    "g a": () => go(to.audit()), "g s": () => go(to.storage()), "g q": () => go(to.quarantine()) });
  return html`<a class="skip" href="#content" onClick=${(event) =>
    { event.preventDefault(); document.querySelector("#content h1, #content")?.focus(); }}>To the content</a>
    <${Top} /><div class="frame"><${Nav} /><main id="content" tabindex="-1"><${Outlet}
      /></main></div><${Layer} />`;
}

function App() {
  if (!session.value) return html`<${SignIn} refusal=${refusal} />`;
  return html`<${Frame} />`;
}

/** Take the key that the server printed out of the address, before anything else can see it. */
function keyOfAddress() {
  const found = /^#key=(.+)$/.exec(location.hash);
  if (!found) return null;
  history.replaceState(null, "", `${location.pathname}#/`);
  place.value = { path: "/", query: {} };
  return decodeURIComponent(found[1]);
}

async function boot() {
  showTheme();
  const key = keyOfAddress();
  // What the address means is fetched while it is found out who is signed in.
  routeOf(place.value.path)?.route.load().catch(() => {});
  try {
    if (key) await signIn(key);
    else session.value = await get("/session");
  } catch (fault) {
    if (key || fault.status !== 401) refusal.value = fault;
  }
  const root = document.getElementById("app");
  root.replaceChildren();
  render(html`<${App} />`, root);
  whenRefused(() => { session.value = null; });
  effect(() => {
    if (session.value) { refusal.value = null; begin(); } else { end(); closeDialog(); }
  });
  document.documentElement.dataset.ready = "true";
}

addEventListener("hashchange", () => {
  const key = keyOfAddress();
  if (key) signIn(key).catch((fault) => { refusal.value = fault; });
});
boot();
