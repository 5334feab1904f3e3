// Light and dark.

import { signal } from "./vendor/preact.js";

const THEMES = ["system", "light", "dark"];

/** Which of light, dark and as the system is chosen. */
export const theme = signal(THEMES.includes(localStorage.getItem("theme")) ? localStorage.getItem("theme") :
  "system");

export function nextTheme() {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length];
  localStorage.setItem("theme", theme.value);
  showTheme();
}

export function showTheme() {
  if (theme.value === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
  dispatchEvent(new Event("themechange"));
}

/** A colour of the theme, for canvases. */
export function colour(name) {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
