// All runs, filtered by what the address asks for.

import { html, useEffect, useState } from "../vendor/preact.js";
import { usePages } from "../api.js";
import { Bytes, Card, Command, Count, Empty, Icon, Page, Problem, Status, Table, Time,
  short } from "../parts.js";
import { ask, to } from "../router.js";

const STATUSES = ["running", "waiting", "paused", "crashed", "failed", "cancelled", "completed", "idle", "empty",
  "unreadable"];
const TYPING_MS = 250;

/** Why a run stands where it stands, and who had it if it crashed: that is for whoever looks closer. */
const why = (run) => [run.reason, run.status === "crashed" && run.owner].filter(Boolean).join("\n");

const COLUMNS = [
  { key: "workflow_id", label: "Run", render: (run) =>
    html`<a class="name" href=${to.run(run.workflow_id)} title=${run.workflow_id}>${short(run.workflow_id, 40)}</a>` },
  { key: "status", label: "Status", render: (run) =>
    html`<${Status} value=${run.status} title=${run.reason || null} />` },
  { key: "last_activity", label: "Last activity", render: (run) =>
    html`<${Time} at=${run.last_activity} />` },
  { key: "newest", label: "Newest checkpoint", isWide: true, render: (run) => (run.newest
    ? html`<a href=${to.checkpoint(run.newest.id)}>@${run.newest.sequence}</a> <span
    class="spare"><${Time} at=${run.newest.created_at} /></span>` : html`<span class="muted">–</span>`) },
  { key: "checkpoints", label: "Checkpoints", align: "right", isSpare: true, render: (run) =>
    html`<${Count} value=${run.checkpoints} />` },
  { key: "state_bytes", label: "State", align: "right", isSpare: true, render: (run) =>
    html`<${Bytes} value=${run.state_bytes} />` },
  { key: "reason", label: "Why", isWide: true, isFill: true, render: (run) =>
    html`<span class="muted" title=${why(run) || null}>${short(run.reason, 60)}</span>` },
];

/** A text field that tells what was typed once the typing rests. */
function Typed({ label, value, onChange, ...rest }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return undefined;
    const timer = setTimeout(() => onChange(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return html`<label class="choice"><span>${label}</span><input value=${text} onInput=${(event) =>
    setText(event.currentTarget.value)} autocomplete="off" spellcheck=${false} ...${rest} /></label>`;
}

export default function Runs({ query }) {
  const chosen = new Set((query.status || "").split(",").filter(Boolean));
  const filter = { status: [...chosen].join(","), q: query.q, agent: query.agent, label: query.label, since:
    query.since };
  const pages = usePages("/runs", { query: filter, limit: 200, live: true });
  const toggle = (status) => {
    const next = new Set(chosen);
    if (!next.delete(status)) next.add(status);
    ask({ status: [...next].join(",") });
  };
  const isFiltered = Object.values(filter).some(Boolean);
  const clear = () => ask({ status: "", q: "", agent: "", label: "", since: "" });
  const command = `holdfast list${chosen.size === 1 ? ` --status ${[...chosen][0]}` : ""}`;
  return html`<${Page} title="Runs">
    <div class="filters" role="group" aria-label="Filters">
      <div class="chips" role="group"
        aria-label="Status">${STATUSES.map((status) =>
          html`<button type="button" class="chip" aria-pressed=${chosen.has(status) ? "true" : "false"}
            onClick=${() => toggle(status)}>${status}</button>`)}</div>
      <${Typed} label="Name has" value=${query.q || ""} onChange=${(q) => ask({ q })} type="search" size="16"
        />
      <${Typed} label="Agent" value=${query.agent || ""} onChange=${(agent) => ask({ agent })} size="10" />
      <${Typed} label="Label" value=${query.label || ""} onChange=${(label) => ask({ label })} size="10" />
      ${isFiltered ? html`<button type="button" class="chip" onClick=${clear}><${Icon} name="cross"
        />Clear</button>` : null}
    </div>
    <${Problem} problem=${pages.problem} retry=${pages.reload} />
    ${pages.problem && !pages.items.length ? null : html`<${Card} isFlush><${Table} label="Runs" columns=${COLUMNS} rows=${pages.items} keyOf=${(run) =>
      run.workflow_id} href=${(run) => to.run(run.workflow_id)}
      hasMore=${pages.hasMore} more=${pages.more} isLoading=${pages.isLoading && !pages.items.length}
      empty=${isFiltered
        ? html`<${Empty} title="No run matches" text="Take a filter away."><button type="button" class="chip"
        onClick=${clear}>Clear all filters</button></${Empty}>`
        : html`<${Empty} title="This store has no runs yet" text="To see one now:"
        command="holdfast demo" />`} /></${Card}>`}
    <${Command} text=${command} />
  </${Page}>`;
}
