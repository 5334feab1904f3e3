// The report of a run, as text: what its Markdown says, drawn block by block. Nothing in it is ever markup.

import { html, useEffect, useState } from "../vendor/preact.js";
import { getText, path } from "../api.js";
import { Button, Card, Command, Copy, Problem, Skeleton, quoted, toast } from "../parts.js";
import { blocksOf, inlineOf } from "./markdown.js";

const BLOCKS_MAX = 2000;

export default function RunReport({ id }) {
  const [state, setState] = useState({});
  const where = path`/runs/${id}/report`;
  const load = () => {
    const mine = new AbortController();
    getText(where, { accept: "text/markdown", signal: mine.signal }).then((text) => setState({ text }),
      (problem) => problem.name !== "AbortError" && setState({ problem }));
    return () => mine.abort();
  };
  useEffect(load, [where]);
  if (state.problem) return html`<${Problem} problem=${state.problem} retry=${load} />`;
  if (state.text === undefined) return html`<${Skeleton} lines=${12} />`;
  return html`<div class="stack"><${Card} title="Report"
    actions=${html`<${Copy} text=${state.text} label="Copy the report as Markdown" />
      <${Button} icon="download" onClick=${() => save(id, state.text)}>Markdown</${Button}><${Button}
        icon="link" href=${`/v1${where}`} target="_blank" rel="noopener">HTML</${Button}>`}>
    <${Report} text=${state.text} /></${Card}><${Command} text=${`holdfast report ${quoted(id)}`} /></div>`;
}

function save(id, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/markdown" }));
  link.download = `${id.replace(/[^\w.-]+/g, "_")}.md`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  toast("The report is saved");
}

export function Report({ text }) {
  const blocks = blocksOf(text);
  return html`<article class="report"
    data-testid="report">${blocks.slice(0, BLOCKS_MAX).map((block) => html`<${Block} block=${block} />`)}
    ${blocks.length > BLOCKS_MAX ? html`<p class="muted">The report goes on: save it to read all of it.</p>`
      : null}</article>`;
}

function Inline({ text }) {
  return inlineOf(text).map(({ kind, text: said }) =>
    (kind === "code" ? html`<code>${said}</code>` : kind === "strong" ? html`<strong>${said}</strong>` :
      kind === "em" ? html`<em>${said}</em>` : said));
}

const DRAW = {
  // The page has the only h1.
  heading: ({ level, text }) => (level <= 2 ? html`<h2><${Inline} text=${text} /></h2>` :
    html`<h3><${Inline} text=${text} /></h3>`),
  rule: () => html`<hr />`,
  code: ({ text }) => html`<pre tabindex="0"><code>${text}</code></pre>`,
  quote: ({ text }) => html`<blockquote><${Inline} text=${text} /></blockquote>`,
  list: ({ items, isNumbered }) =>
    { const rows = items.map((item) => html`<li><${Inline} text=${item} /></li>`); return isNumbered ?
      html`<ol>${rows}</ol>` : html`<ul>${rows}</ul>`; },
  table: ({ head, rows }) => html`<div class="table-box" tabindex="0" role="region"
    aria-label=${`Table: ${head.join(", ")}`}><table><thead><tr>${head.map((cell) =>
      html`<th scope="col"><${Inline} text=${cell} /></th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr>${row.map((cell) =>
      html`<td><${Inline} text=${cell} /></td>`)}</tr>`)}</tbody></table></div>`,
  text: ({ text }) => html`<p><${Inline} text=${text} /></p>`,
};

function Block({ block }) {
  return DRAW[block.kind](block);
}
