"""Secrets planted in everything a workflow can say, and what finds them again in bytes."""

from __future__ import annotations

import base64
import json
import logging
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from typing import Any

import holdfast
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import CheckpointError
from tests.canaries import CANARIES, TOKENS, Canary
from tests.values import Invoice

#: Secrets by the name they stand under only: nothing about them looks like one.
NAMED = {
    name: "wX7-only-here-" + name.replace("_", "-")
    for name in ("password", "api_key", "clientSecret", "Authorization", "private_key", "refresh_token")
}
_LONG = "lorem ipsum dolor sit amet " * 1_000
_WINDOW = 18

Reported = list[str]


def nested(value: Any, levels: int = 8) -> Any:
    """Put a value far down."""
    for level in range(levels):
        value = [value, level] if level % 2 else {"inner": value}
    return value


def whole_state() -> dict[str, Any]:
    """Put every secret everywhere in one state."""
    texts = [canary.text for canary in CANARIES]
    return {
        "shallow": texts,
        "deep": [nested(text) for text in texts],
        "keys": {text: number for number, text in enumerate(texts)},
        "bytes": [b"\x00\xff" + text.encode() for text in texts],
        "tuple": tuple(texts),
        "set": set(texts),
        "object": Invoice(7, texts),
        "pairs": {1: texts, 2: NAMED},
        "json": [json.dumps({"arguments": json.dumps({"content": text})}) for text in texts],
        "base64": [base64.b64encode(canary.text.encode()).decode() for canary in TOKENS],
        "odd": [f"\ud800 {text}" for text in texts],
        "large": [_LONG + "\n".join(texts), _LONG.encode() + "\n".join(texts).encode()],
        "named": NAMED,
        "deep_named": nested(NAMED),
    }


def growing(step: int) -> dict[str, Any]:
    """Let each secret arrive in two pieces, with more to follow, and a window slide over all of them."""
    texts = [canary.text for canary in CANARIES]
    cuts = [len(text) * min(step, 2) // 2 for text in texts]
    logs = {f"log {n}": f"so far {text[:cut]}" for n, (text, cut) in enumerate(zip(texts, cuts, strict=True))}
    if step > 2:
        logs = {name: text + f" and {step} more" for name, text in logs.items()}
    window = [{"role": "user", "content": text} for text in texts[step * 9 : step * 9 + _WINDOW]]
    return {**logs, "window": window, "step": step}


def plant(service: holdfast.CheckpointService) -> Reported:
    """Tell a service every secret in every way; answer what it said in return."""
    said: Reported = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _checkpoints(service)
        _events(service)
        _trail(service)
        said += _refusals(service)
        logging.getLogger("holdfast").error("they sent %s", CANARIES[0].text)
        service.flush()
        service.load_latest("everything")
        service.get_by_id("growing@latest")
    return said + [str(one.message) for one in caught]


def _checkpoints(service: holdfast.CheckpointService) -> None:
    state = whole_state()
    service.create_checkpoint("everything", state, stage_state=state, agent_state=state, agent_id="planner")
    service.create_checkpoint("everything", {"gone": state["shallow"][0]})
    service.create_checkpoint("everything", {**state, "again": state["deep"]})
    for step in range(1, 13):
        service.create_checkpoint("growing", growing(step), stage_state={"last": CANARIES[step].text})
    service.fork_workflow("growing@latest", "forked")


def _events(service: holdfast.CheckpointService) -> None:
    for canary in CANARIES:
        data = {"said": canary.text, "deep": nested(canary.text), **NAMED}
        service.append_event("events", "TOLD", data, cost={"usd": 1, "note": canary.text}, wait=False)
    trace = {"error_message": f"failed: {CANARIES[1].text}", "error_stacktrace": _trace()}
    service.append_event("events", "CHECKPOINT_STATUS", trace)
    service.record_decision(
        "events", CANARIES[2].text, rationale=CANARIES[3].text, data={"why": CANARIES[4].text}
    )
    service.update_agent_state("events", "planner", {"key": CANARIES[5].text, **NAMED})


def _trail(service: holdfast.CheckpointService) -> None:
    for canary in CANARIES:
        payload = {"said": canary.text, "deep": nested(canary.text), **NAMED}
        service.audit.log_event(
            "NOTED", workflow_id="events", facts={"ref": canary.text[:500]}, payload=payload
        )
    service.audit.log_event(AuditType.APPROVAL_GRANTED, payload={"reason": CANARIES[6].text})


#: Secrets as names, and in a state that cannot be stored.
_REFUSED: tuple[Callable[[holdfast.CheckpointService, str], Any], ...] = (
    lambda service, text: service.create_checkpoint(text, {}),
    lambda service, text: service.create_checkpoint("w", {}, agent_id=text),
    lambda service, text: service.append_event("w", text),
    lambda service, text: service.create_checkpoint("w", {text: object()}),
    lambda service, text: service.audit.log_event("NOTED", workflow_id=text, payload={}),
    lambda service, text: service.acquire_lease("w", text),
)


def _refusals(service: holdfast.CheckpointService) -> Reported:
    """Ask for what is refused; answer what the errors say."""
    said = []
    for canary in CANARIES:
        for ask in _REFUSED:
            try:
                ask(service, canary.text)
            except CheckpointError as refusal:
                said += [str(refusal), *map(str, refusal.args)]
    return said


def _trace() -> str:
    return "\n".join(f'  File "x.py", line 1, in f\n    connect("{canary.text}")' for canary in CANARIES)


def needles(canary: Canary) -> Iterator[bytes]:
    """Give every way in which a secret could show: plain, escaped, and in base64 at any place."""
    for line in canary.secret.splitlines():
        if line.startswith("-----"):
            continue
        data = line.encode()
        yield data
        yield json.dumps(line)[1:-1].encode()
        yield json.dumps(json.dumps(line)[1:-1])[1:-1].encode()
        for skip in (0, 1, 2):
            inner = data[skip : skip + (len(data) - skip) // 3 * 3]
            if len(inner) >= 9:
                yield base64.b64encode(inner)


def found(pieces: Iterable[bytes]) -> set[str]:
    """Name the secrets that show in any of the pieces."""
    secret_of, search = _search()
    return {secret_of[match.group()] for piece in pieces for match in search.finditer(piece)}


@cache
def _search() -> tuple[dict[bytes, str], Any]:
    """Make one search of all needles: some stores have megabytes to look through."""
    named = [Canary("named", secret, secret) for secret in NAMED.values()]
    secret_of = {way: canary.secret for canary in (*CANARIES, *named) for way in needles(canary)}
    re2 = import_module("re2")
    options = re2.Options()
    options.max_mem = 256 * 1024 * 1024
    return secret_of, re2.compile(b"|".join(map(re2.escape, secret_of)), options)
