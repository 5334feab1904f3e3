// The style of the pages and dialogs that need more than the common one; loaded with the first of them.

import { useEffect } from "./vendor/preact.js";

/** Have pages.css in the document. */
export function loadLook() {
  if (document.querySelector('link[href="pages.css"]')) return;
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = "pages.css";
  document.head.append(link);
}

export function useLook() {
  useEffect(loadLook, []);
}
