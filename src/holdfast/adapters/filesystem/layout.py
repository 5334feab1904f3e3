"""Where everything lies. An id is never a path: folders are named by `folder_name`, sharded by hash."""

from __future__ import annotations

from functools import lru_cache

from holdfast.domain.ids import check_id, folder_name, shard

SETTINGS = "holdfast.json"
CHECKPOINTS = "checkpoints"
EVENTS = "events"
LEASES = "leases"
AUDIT = "audit"
BLOBS = "blobs"
QUARANTINE = "quarantine"
MANIFEST = "manifest.jsonl"
LEASE = "lease.json"
SUMS = "SHA256SUMS"
TRAIL = "audit_trail.jsonl"
PAYLOADS = "payloads.jsonl"
#: Which entry is which leaf of the tree, and the names of the sessions that it refers to.
ORDER = f"{AUDIT}/log/order.txt"
SESSIONS = f"{AUDIT}/log/sessions.jsonl"

_DELTAS_SUFFIX = ".deltas.jsonl"


@lru_cache(maxsize=4096)
def workflow_folder(workflow_id: str) -> str:
    check_id("workflow", workflow_id)
    return f"{CHECKPOINTS}/{shard(workflow_id)}/{folder_name(workflow_id)}"


@lru_cache(maxsize=4096)
def events_folder(workflow_id: str) -> str:
    check_id("workflow", workflow_id)
    return f"{EVENTS}/{shard(workflow_id)}/{folder_name(workflow_id)}"


@lru_cache(maxsize=4096)
def session_folder(session_id: str) -> str:
    check_id("session", session_id)
    return f"{AUDIT}/{shard(session_id)}/{folder_name(session_id)}"


@lru_cache(maxsize=4096)
def trail_path(session_id: str) -> str:
    return f"{session_folder(session_id)}/{TRAIL}"


@lru_cache(maxsize=4096)
def payloads_path(session_id: str) -> str:
    return f"{session_folder(session_id)}/{PAYLOADS}"


def lease_path(workflow_id: str) -> str:
    return f"{LEASES}/{workflow_folder(workflow_id).partition('/')[2]}/{LEASE}"


@lru_cache(maxsize=4096)
def manifest_path(folder: str) -> str:
    return f"{folder}/{MANIFEST}"


def sums_path(folder: str) -> str:
    return f"{folder}/{SUMS}"


def deltas_name(group: int) -> str:
    return f"checkpoint_{group:06d}{_DELTAS_SUFFIX}"


@lru_cache(maxsize=4096)
def deltas_path(folder: str, group: int) -> str:
    return f"{folder}/{deltas_name(group)}"


@lru_cache(maxsize=4096)
def events_path(workflow_id: str, name: str) -> str:
    return f"{events_folder(workflow_id)}/{name}"


def keyframe_name(sequence: int, suffix: str) -> str:
    return f"checkpoint_{sequence:06d}.{suffix}"


def group_of(name: str) -> int | None:
    """Group of a delta file by its name, None for other files."""
    number = name.removeprefix("checkpoint_").removesuffix(_DELTAS_SUFFIX)
    return int(number) if name == f"checkpoint_{number}{_DELTAS_SUFFIX}" and number.isdecimal() else None


def keyframe_of(name: str) -> tuple[int, str] | None:
    """Sequence and suffix of a keyframe file by its name, None for other files."""
    number, _, suffix = name.removeprefix("checkpoint_").partition(".")
    is_keyframe = name.startswith("checkpoint_") and number.isdecimal() and group_of(name) is None
    return (int(number), suffix) if is_keyframe and not suffix.endswith("tmp") else None


def events_name(timestamp: str) -> str:
    return f"events_{timestamp[:10]}.jsonl"


def is_events_name(name: str) -> bool:
    """Tell an events file from others: one that is being put in the place of another is none yet."""
    return name.startswith("events_") and name.endswith(".jsonl")


def is_sha256(text: str) -> bool:
    return len(text) == 64 and set(text) <= set("0123456789abcdef")


def blob_path(sha256: str) -> str:
    if not is_sha256(sha256):
        raise ValueError(f"not a SHA-256: {sha256!r}")
    return f"{BLOBS}/{sha256[:2]}/{sha256}"
