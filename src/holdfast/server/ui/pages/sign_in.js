// Asking for a token, where the browser has no session.

import { html, useState } from "../vendor/preact.js";
import { signIn } from "../api.js";
import { Button, Command, Field, Problem } from "../parts.js";

export default function SignIn({ refusal }) {
  const [token, setToken] = useState("");
  const [isBusy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await signIn(token.trim());
    } catch (fault) {
      refusal.value = fault;
      setBusy(false);
    }
  };
  return html`<main class="sign-in"><form class="card" onSubmit=${submit} data-testid="sign-in">
    <img src="icon.svg" alt="" width="40" height="40" />
    <h1>Sign in to Holdfast</h1>
    <p>Open the address that <code>holdfast serve</code> printed when it began, or give a token.</p>
    <${Field} label="Token"><input type="password" name="token" autocomplete="current-password"
      spellcheck=${false} required
      value=${token} onInput=${(event) => setToken(event.currentTarget.value)} /></${Field}>
    <${Problem} problem=${refusal.value} />
    <${Button} kind="primary" type="submit" isBusy=${isBusy} disabled=${!token.trim()}>Sign in</${Button}>
    <p class="muted">A token for somebody, with what that one may do:</p>
    <${Command} text="holdfast token create NAME --role viewer" />
  </form></main>`;
}
