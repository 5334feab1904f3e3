"""Giving hidden values back from a list of secrets that somebody has, without code and without guessing.

The digits of a placeholder are those of its secret under the store's key. A secret of the list is put only
where they fit, so that nobody is shown one that was not there: a list may hold what is long out of use.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.application.kit import Kit
from holdfast.application.redaction.redacting import KEY_FILE
from holdfast.application.revealing import Resolver
from holdfast.domain.json_reading import read_json
from holdfast.domain.placeholders import Placeholders


def resolver_of(kit: Kit, listed: bytes) -> Resolver:
    """Answer what knows the secrets of a list: one on each line, or as NAME=VALUE."""
    key = _key(kit)
    placeholders = None if key is None else Placeholders(key)
    secrets = list(dict.fromkeys(candidates(listed.decode("utf-8", "replace"))))
    fitting: dict[str, str] = {}

    def resolve(pointer: str, placeholder: str) -> str | None:
        """Answer the secret that was there, or None."""
        kind = placeholder.split(":")[1]
        if placeholders is not None and kind not in kinds:
            kinds.add(kind)
            fitting.update((placeholders.make(kind, one.encode()), one) for one in secrets)
        return fitting.get(placeholder)

    kinds: set[str] = set()
    return resolve


def candidates(text: str) -> Iterator[str]:
    """Answer everything that may be a secret in a list; one too many does no harm."""
    for line in text.splitlines():
        whole = line.strip()
        value = whole.partition("=")[2].strip()
        yield from filter(None, (whole, value, _unquoted(value)))


def _unquoted(value: str) -> str:
    """Read a value in quotes; in double ones `\\n` and the like mean what they mean in JSON."""
    if len(value) >= 2 and value[0] == value[-1] == "'":
        return value[1:-1]
    try:
        read = read_json(value) if value.startswith('"') else ""
    except ValueError:
        return ""
    return read if isinstance(read, str) else ""


def _key(kit: Kit) -> bytes | None:
    """Answer the key of the store's placeholders; None where there is none, or it cannot be opened."""
    stored = kit.store.file(KEY_FILE)
    if stored is None or kit.vault is None:
        return stored
    return None if kit.vault.is_locked else kit.vault.open_file(KEY_FILE, stored)
