// Lays a graph out beside the page, so that the page never waits for it.

import { layered } from "./layout_layers.js";

onmessage = ({ data: { number, nodes, edges } }) => {
  try {
    postMessage({ number, ...layered(nodes, edges) });
  } catch (fault) {
    postMessage({ number, fault: String(fault) });
  }
};
