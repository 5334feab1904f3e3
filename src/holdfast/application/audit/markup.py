"""HTML out of values: whatever is not markup already is escaped, so that nothing can be forgotten.

Characters that show nothing, or turn the direction of what follows, are written out by their number: on a
page of evidence nobody shall read something else than what stands there.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterable

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)
_VOID = frozenset({"meta", "br", "hr", "col"})


class Markup(str):
    """Text that is HTML."""

    __slots__ = ()


Child = str | int | Iterable["Child"] | None


def escape(text: str) -> Markup:
    """Write text so that it is read as text, within an element and within an attribute."""
    return Markup(html.escape(_UNSEEN.sub(_number, text), quote=True))


def _number(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"


def join(*children: Child) -> Markup:
    """Put children one after the other; those that are not markup are escaped, None is nothing."""
    return Markup("".join(_pieces(children)))


def _pieces(children: Iterable[Child]) -> Iterable[str]:
    for child in children:
        if isinstance(child, Markup):
            yield child
        elif isinstance(child, str | int):
            yield escape(str(child))
        elif child is not None:
            yield from _pieces(child)


def element(tag: str, /, *children: Child, **attributes: str | int | None) -> Markup:
    """Make an element, without attributes that are None; `class_` is `class`, `aria_label` `aria-label`."""
    named = (
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    start = f"<{tag}{''.join(named)}>"
    return Markup(start if tag in _VOID else f"{start}{join(*children)}</{tag}>")


def table(caption: str, heads: Iterable[str], *bodies: Child, look: str | None = None) -> Markup:
    """Make a table with a caption and named columns; one with a look shows its caption to the blind only."""
    row = element("tr", (element("th", head, scope="col") for head in heads))
    title = element("caption", element("span", caption, class_="unseen" if look else None))
    whole = element("table", title, element("thead", row), *bodies, class_=look)
    return element("div", whole, class_="scroll", tabindex=0, role="group", aria_label=caption)


def moment_text(timestamp: str) -> str:
    """Write a timestamp as people read it, to the second."""
    return f"{timestamp[:10]} {timestamp[11:19]} UTC"


def page(title: str, style: str, *body: Child) -> str:
    """Make a whole page that loads nothing, runs nothing and says so to the browser."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        Markup(f"<style>{style}</style>"),
    )
    return f"<!DOCTYPE html>\n{element('html', head, element('body', *body), lang='en')}\n"
