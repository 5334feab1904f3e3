// Keys. A component says what it hears with useKeys({"j": next, "g r": goToRuns}); the newest one that knows
// a key gets it. Nothing is heard while somebody types, or while a dialog is open (but for the dialog's own).

import { useEffect, useRef } from "./vendor/preact.js";

export const HELP = [
  ["/", "Search"],
  ["j / k", "Next, previous row"],
  ["Enter", "Open the row"],
  ["[ / ]", "Previous, next checkpoint"],
  ["d", "Difference to the parent"],
  ["g h", "Go to what needs you"],
  ["g r", "Go to the runs"],
  ["g a", "Go to the audit trail"],
  ["g s", "Go to storage"],
  ["g q", "Go to quarantine"],
  ["p", "Pause or go on with live updates"],
  ["t", "Light, dark, as the system"],
  ["+ / - / 0", "Timeline: closer, further, all"],
  ["← / →", "Timeline: earlier, later"],
  ["?", "This help"],
  ["Esc", "Close"],
];

const maps = [];
const FIRST_MS = 1200;
let first = "";
let firstTimer = 0;

/** Hear keys for as long as the component is there. */
export function useKeys(map, isOn = true) {
  const latest = useRef(map);
  latest.current = map;
  useEffect(() => {
    if (!isOn) return undefined;
    maps.push(latest);
    return () => maps.splice(maps.indexOf(latest), 1);
  }, [isOn]);
}

function isTyping(target) {
  return target instanceof HTMLElement &&
    (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));
}

function find(key) {
  for (let at = maps.length - 1; at >= 0; at--) {
    const found = maps[at].current[key];
    if (found) return found;
  }
  return null;
}

function press(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (isTyping(event.target) || document.querySelector("[role=dialog]")) return;
  const pair = first && find(`${first} ${event.key}`);
  clearTimeout(firstTimer);
  first = "";
  const found = pair || find(event.key);
  if (found) {
    if (found(event) !== false) event.preventDefault();
  } else if (event.key === "g") {
    first = "g";
    firstTimer = setTimeout(() => { first = ""; }, FIRST_MS);
  }
}

addEventListener("keydown", press);
