// The part of Markdown that reports use, taken apart into blocks. It gives data, never markup.

const LINE_CHARS_MAX = 20_000;

/** Take a text apart: blocks {kind: heading | rule | code | quote | list | table | text, ...}. */
export function blocksOf(text) {
  const lines = text.split(/\r?\n/).map((line) => line.slice(0, LINE_CHARS_MAX));
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    const [block, next] = blockAt(lines, at);
    if (block) blocks.push(block);
    at = next;
  }
  return blocks;
}

function blockAt(lines, at) {
  const line = lines[at];
  if (!line.trim()) return [null, at + 1];
  const heading = /^(#{1,6})\s+(.*)$/.exec(line);
  if (heading) return [{ kind: "heading", level: heading[1].length, text: heading[2] }, at + 1];
  if (/^(-{3,}|\*{3,})\s*$/.test(line)) return [{ kind: "rule" }, at + 1];
  if (/^(```|~~~)/.test(line)) return fenced(lines, at);
  if (/^ {4}/.test(line)) return run(lines, at, /^ {4}|^\s*$/, (found) =>
    ({ kind: "code", text: found.map((one) => one.slice(4)).join("\n").trimEnd() }));
  if (line.startsWith(">")) return run(lines, at, /^>/, (found) =>
    ({ kind: "quote", text: found.map((one) => one.replace(/^>\s?/, "")).join(" ") }));
  if (line.startsWith("|") && /^\|[\s:|-]+\|?\s*$/.test(lines[at + 1] || "")) return table(lines, at);
  if (/^\s*([-*]|\d+[.)])\s+/.test(line)) return list(lines, at);
  return paragraph(lines, at);
}

function run(lines, at, pattern, made) {
  let end = at;
  while (end < lines.length && pattern.test(lines[end])) end++;
  return [made(lines.slice(at, end)), end];
}

function fenced(lines, at) {
  const fence = lines[at].slice(0, 3);
  let end = at + 1;
  while (end < lines.length && !lines[end].startsWith(fence)) end++;
  return [{ kind: "code", text: lines.slice(at + 1, end).join("\n") }, end + 1];
}

function cells(line) {
  return line.replace(/^\||\|\s*$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim());
}

function table(lines, at) {
  return run(lines, at, /^\|/, ([head, , ...rows]) =>
    ({ kind: "table", head: cells(head), rows: rows.map(cells) }));
}

function list(lines, at) {
  const items = [];
  let end = at;
  const isNumbered = /^\s*\d/.test(lines[at]);
  while (end < lines.length && lines[end].trim()) {
    const item = /^\s*(?:[-*]|\d+[.)])\s+(.*)$/.exec(lines[end]);
    if (item) items.push(item[1]);
    else items[items.length - 1] += ` ${lines[end].trim()}`;
    end++;
  }
  return [{ kind: "list", items, isNumbered }, end];
}

function paragraph(lines, at) {
  let end = at;
  while (end < lines.length && lines[end].trim() &&
    (end === at || !/^(#{1,6}\s|```|>|\||\s*[-*]\s)/.test(lines[end]))) end++;
  return [{ kind: "text", text: lines.slice(at, end).map((line) => line.trim()).join(" ") }, end];
}

/** Take a line apart: pieces {kind: text | code | strong | em, text}; a backslash keeps what follows. */
export function inlineOf(line) {
  const pieces = [];
  const pattern = /(`+)(.+?)\1(?!`)|\*\*((?:\\.|[^\\*])+)\*\*|\*((?:\\.|[^\\*])+)\*|\\([!-/:-@[-`{-~])/g;
  let last = 0;
  const add = (kind, text) => {
    const before = pieces.at(-1);
    if (kind === "text" && before?.kind === "text") before.text += text;
    else if (text) pieces.push({ kind, text });
  };
  for (const found of line.matchAll(pattern)) {
    add("text", line.slice(last, found.index));
    last = found.index + found[0].length;
    if (found[2] !== undefined) add("code", found[2]);
    else if (found[3] !== undefined) add("strong", plain(found[3]));
    else if (found[4] !== undefined) add("em", plain(found[4]));
    else add("text", found[5]);
  }
  add("text", line.slice(last));
  return pieces;
}

function plain(text) {
  return text.replace(/\\([!-/:-@[-`{-~])/g, "$1");
}
