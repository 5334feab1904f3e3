// What was found damaged and set aside: why, since when, which bytes, and what can be done about it.

import { html } from "../vendor/preact.js";
import { path, useGet, usePages } from "../api.js";
import { Badge, Button, Bytes, Card, Command, Empty, Facts, Hash, Loaded, Page, Problem, Status, Table, Term,
  Time, act, quoted, short } from "../parts.js";
import { ask, to } from "../router.js";

export default function Quarantine({ query }) {
  const pages = usePages("/quarantine", { live: (event) => /QUARANTINE|INTEGRITY/.test(event.type) });
  const open = pages.items.filter((row) => !row.released).length;
  // Other pages know what was set aside by its place only.
  const name = query.name || pages.items.find((row) => row.place === query.place)?.name;
  return html`<${Page} title="Quarantine"
    note=${html`What is damaged or suspect is set aside with its bytes: kept as evidence, never used to go on. <${Term}
    word="quarantine" />`}
    actions=${html`<${Button} icon="retry" onClick=${pages.reload}>Refresh</${Button}>`}>
    <${Problem} problem=${pages.problem} retry=${pages.reload} />
    ${name ? html`<${Detail} key=${name} name=${name} reload=${pages.reload} />` : null}
    ${pages.problem && !pages.items.length ? null : html`<${Card} title="Set aside" isFlush
      actions=${html`<span class="muted">${open} in force${pages.items.length > open
      ? `, ${pages.items.length - open} released` : ""}</span>`}>
      <${Table} label="What was set aside" rows=${pages.items} keyOf=${(row) => row.name} onOpen=${(row) =>
        ask({ name: row.name, place: "" })} selected=${name}
        hasMore=${pages.hasMore} more=${pages.more} isLoading=${pages.isLoading}
        empty=${html`<${Empty} title="Nothing is set aside"
          text="Damage is found when something is read, and by a check of everything:"
          command="holdfast validate --all --deep --quarantine" />`} columns=${[
          { key: "state", label: "State", width: "128px", render: (row) => html`<${Standing} row=${row} />` },
          { key: "place", label: "What", render: (row) => html`<a href=${to.quarantine({ name: row.name })}
            title=${row.place}>${short(row.place, 40)}</a>` },
          { key: "kind", label: "Kind", isSpare: true },
          { key: "reason", label: "Why", render: (row) => html`<span class="reason" title=${row.reason}>${short(row.reason,
            80)}</span>` },
          { key: "found_at", label: "Since", width: "110px", isWide: true, render: (row) => html`<${Time} at=${row.found_at}
            />` },
          { key: "found_by", label: "Found by", isSpare: true, render: (row) => row.found_by ?? "" },
          { key: "size_bytes", label: "Bytes", align: "right", isWide: true, render: (row) => html`<${Bytes}
            value=${row.size_bytes} />` },
        ]} /></${Card}>`}</${Page}>`;
}

function Standing({ row }) {
  if (row.released) return html`<${Badge} tone="ok" icon="check"
    title=${row.released.reason}>released</${Badge}>`;
  return row.bars ? html`<${Status} value="quarantined" title="The checkpoint is not used." />`
    : html`<${Badge} tone="quiet" icon="box"
    title="Nothing is kept from being used by it.">evidence</${Badge}>`;
}

function Detail({ name, reload }) {
  const detail = useGet(path`/quarantine/${name}`);
  const done = () => {
    detail.reload();
    reload();
  };
  return html`<${Loaded} of=${detail} lines=${6}>${(found) => html`<${Found} found=${found} done=${done} />`}
    </${Loaded}>`;
}

function Found({ found: { row, parts, damage, last_good: good }, done }) {
  const where = row.workflow_id && row.sequence ? `${row.workflow_id}@${row.sequence}` : null;
  const props = { name: row.name, place: row.place, onDone: done };
  const isOpen = !row.released;
  return html`<${Card} title=${short(row.place, 80)} scopes=${isOpen && where ? ["write", "prune"]
    : ["prune"]} actions=${html`<${Standing} row=${row} />
      ${isOpen && where ? html`<${Button} icon="retry" scope="write" onClick=${() => act("revalidate",
        props)}>Check again</${Button}>
        <${Button} icon="check" scope="write" onClick=${() => act("release", props)}>Release</${Button}>`
          : null}
      <${Button} icon="trash" kind="danger" scope="prune" onClick=${() => act("drop", props)}>Drop</${Button}>
      <${Button} kind="quiet" icon="cross" onClick=${() => ask({ name: "", place: "" })}>Close</${Button}>`}>
    <div class="stack" data-testid="quarantined">
      <p><strong>${row.reason}</strong></p>
      <${Facts} items=${[
        where && ["Checkpoint", html`<a href=${to.checkpoint(where)}>${where}</a>`],
        ["Since", html`<${Time} at=${row.found_at} isLong />`], ["Found by", row.found_by], ["Kind", row.kind],
        ["Last good ancestor", good ? html`<a href=${to.checkpoint(good)}>${good}</a>` : where ? "none" : null,
          "last good checkpoint"],
        row.released && ["Released", html`<${Time} at=${row.released.at} isLong />`], row.released && ["By",
          row.released.by], row.released && ["Because", row.released.reason],
        ["SHA-256 of the bytes", html`<${Hash} value=${row.sha256} />`], row.checksum && ["Was committed as",
          html`<${Hash} value=${row.checksum} />`],
      ]} />
      ${damage.length ? html`<div><h3>What is in its way now</h3><ul>${damage.slice(0, 50).map((one) =>
        html`<li>the ${one.piece} of checkpoint ${one.sequence}: ${one.problem}</li>`)}</ul></div>` : null}
      ${parts.length ? html`<div><h3>Which pieces and blobs</h3><${Table} label="Pieces" rows=${parts}
        keyOf=${(part) => part.name} columns=${[
        { key: "name", label: "Piece", render: (part) => html`<code title=${part.name}>${short(part.name, 40)}
          </code>` },
        { key: "size_bytes", label: "Bytes", align: "right", render: (part) => html`<${Bytes}
          value=${part.size_bytes} />` },
        { key: "is_copied", label: "State", render: (part) => (part.is_copied ? html`<${Badge} tone="bad"
          icon="cross">damaged, kept as found</${Badge}>` : html`<${Badge} tone="ok"
          icon="check">whole</${Badge}>`) },
        { key: "sha256", label: "SHA-256", isWide: true, render: (part) => html`<${Hash} value=${part.sha256}
          />` },
      ]} /></div>` : null}
      <div class="row">${good ? html`<${Button} icon="retry" kind="primary" scope="recover" onClick=${() =>
        act("recover", { workflow_id: row.workflow_id })}>Recover the run</${Button}>` : null}</div>
      <${Command} text=${`holdfast quarantine show ${quoted(row.name)}`} />
    </div></${Card}>`;
}
