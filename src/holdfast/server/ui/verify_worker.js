// Verifies the log beside the page, so that the page goes on answering; tells how far it is.

import { verifyLog } from "./verify.js";

const PAGE = 2000;
const RETRIES = 5;

async function ask(path) {
  for (let turn = 0; ; turn++) {
    const response = await fetch(path, { credentials: "same-origin", cache: "no-store" });
    if (response.ok) return response;
    const isLater = response.status === 429 || response.status === 503;
    if (!isLater || turn === RETRIES) throw await problemOf(response);
    const seconds = Number(response.headers.get("Retry-After")) || 1;
    await new Promise((resume) => setTimeout(resume, seconds * 1000));
  }
}

async function problemOf(response) {
  const problem = await response.json().catch(() => ({}));
  return new Error(problem.detail || `the server answered ${response.status}`);
}

onmessage = async ({ data: { trust, limit = PAGE } }) => {
  try {
    const head = await (await ask("/v1/audit/head")).json();
    const readHead = () => ({ note: head.note, keys: head.keys, total: head.size });
    const readLines = async (from, most) => {
      const response = await ask(`/v1/audit/lines?start=${from}&limit=${Math.max(1, Math.min(limit, most))}`);
      return new Uint8Array(await response.arrayBuffer());
    };
    const onProgress = (progress) => postMessage({ progress });
    const result = await verifyLog({ readHead, readLines, trust, onProgress });
    postMessage({ result: { ...result, origin: head.origin } });
  } catch (error) {
    postMessage({ error: error.message });
  }
};
