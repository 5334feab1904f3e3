// The pieces that all pages are made of. With their props (a ? marks what may be left out):
//
//   Page      title, copy? (text), crumbs? [[text, href]], actions?, scopes?, note?, children
//   Card      title?, actions?, scopes?, isFlush?, label?, children: a framed part
//   Facts     items [[name, value, term?]]: names and values
//   Figure    label, value, note?, href?, tone?: one large number
//   Status    value, title?: icon and word of any status
//   Badge     tone? (ok bad warn info quiet violet), icon?, title?, children
//   Icon      name, label?: see ICONS
//   Time      at (ISO text, ms or Date), isLong?: relative; local and UTC on hover
//   Span      ms: how long something took
//   Bytes     value: 1.2 MB; the exact number on hover
//   Count     value: 12,345
//   Id        value, href?, isShort?: a name in monospace, with Copy
//   Hash      value: shortened, with Copy
//   Copy      text, label?: a button that copies
//   Command   text, label?: the equal command, with Copy
//   Table     label, columns [{key, label, render?(row), align?, width?, isWide?, isSpare?, isFill?, title?}],
//             rows, keyOf(row), href?(row), onOpen?(row), selected?, hasMore?, more?, isLoading?, empty?,
//             height?, rowClass?(row). Virtual beyond 150 rows; j/k/Enter; isWide columns go on phones, isSpare
//             ones below 1200 px, an isFill one takes the room that is left; more() is called at the end
//   Behind    label?, children: the table behind a chart, folded
//   Tabs      label, tabs [{id, label, count?}], current, hrefOf?(id), onChange?(id), children
//   Field     label, hint?, error?, children (one input, select or textarea)
//   Choice    label, value, options [[value, label]], onChange: a select with its label
//   Button    kind? (primary danger quiet onward), scope?, icon?, isBusy?, disabled?, why?, onClick, href?, children
//             with scope: disabled, with the reason in words, where the token lacks it
//   Buttons   scopes? (that they need), class?, children: side by side; what is lacking said once
//   Dialog    title, onClose, actions?, isWide?, children: focus stays inside; Esc closes
//   Empty     title, text?, command?, children?: nothing there, and what to do
//   Problem   problem (ApiError), retry?, children?: what went wrong, in words
//   Skeleton  lines?: something is on its way
//   Loaded    of (what useGet gives), lines?, children(data): skeleton, problem or children
//   Progress  done, total?, unit?: how far long work is
//   Term      word: a ? that explains a word (TERMS)
//   Long      text, max?: a long text, folded
//   Meter     parts [{label, value, tone?}], label: shares of a whole, as a bar
//
// Functions: toast(text, tone?), showDialog(Component, props?) (which gets onClose), closeDialog(),
// act(kind, props) (shows DIALOGS[kind] of dialogs.js: recover {workflow_id, checkpoint?}, resume, approve,
// pause, cancel {workflow_id}, fork {checkpoint}), toneOf, iconPath, colour, bytesText, countText, counted,
// timeText, rangeText, spanText, ageText, short, quoted, theme. Addresses: router.js. Data: api.js.

export { html } from "./vendor/preact.js";
export * from "./parts_frame.js";
export * from "./parts_layer.js";
export * from "./parts_status.js";
export * from "./parts_table.js";
export * from "./parts_terms.js";
export * from "./parts_theme.js";
export * from "./parts_words.js";
