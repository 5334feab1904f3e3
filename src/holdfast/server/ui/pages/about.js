// What this is, who is signed in, and what words mean.

import { html } from "../vendor/preact.js";
import { session, useGet } from "../api.js";
import { HELP } from "../keys.js";
import { Badge, Card, Facts, Id, Page, TERMS } from "../parts.js";
import { to } from "../router.js";

export default function About() {
  const who = session.value;
  const description = useGet("/openapi.json");
  return html`<${Page} title="About">
    <${Card} title="This server"><${Facts} items=${[
      ["Version", who.version], ["Store", html`<${Id} value=${who.store} />`],
        ["May be changed", who.is_read_only ? "no, this server only reads" : "yes"],
      ["Interface", html`<a href="/v1/openapi.json">OpenAPI${description.data ?
        ` ${description.data.openapi}` : ""}</a>`],
      ["Libraries", html`<a href="vendor/LICENSES.txt">Licences</a>`],
    ]} /></${Card}>
    <${Card} title="You"><${Facts}
      items=${[["Name", who.name], ["May",
        html`<span class="row">${who.scopes.map((scope) => html`<${Badge}>${scope}</${Badge}>`)}</span>`]]}
          /></${Card}>
    <${Card} title="Words"><${Facts} items=${Object.entries(TERMS)} /></${Card}>
    <${Card} title="Keys"><dl class="keys">${HELP.map(([key, what]) =>
      html`<div><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl></${Card}>
    <p class="muted">This page loads nothing from elsewhere and tells nobody anything. <a
      href=${to.home()}>What needs you</a></p>
  </${Page}>`;
}
