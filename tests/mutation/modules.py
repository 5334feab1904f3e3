"""Which modules get faults, and which tests have to notice."""

from __future__ import annotations

from pathlib import Path

#: Rooms and the modules in them whose mistakes would cost what Holdfast is for.
SUBJECTS: dict[str, tuple[str, ...]] = {
    "recovery": (
        "domain/quarantine",
        "domain/recovery",
        "domain/recovery_plan",
        "domain/reducers",
        "domain/replay",
        "application/restore",
        "application/recovery/ancestry",
        "application/recovery/claiming",
        "application/recovery/examining",
        "application/recovery/incomplete",
        "application/recovery/owners",
        "application/recovery/partial_failure",
        "application/recovery/quarantine_draft",
        "application/recovery/quarantining",
        "application/recovery/recovering",
        "application/recovery/resuming",
        "application/recovery/searching",
        "application/recovery/statuses",
        "application/recovery/unusable",
        "application/recovery/watched_recovery",
        "execution/again",
        "execution/drift",
    ),
    # What a crash of a store in a folder is recovered by.
    "journal": (
        "adapters/filesystem/applied",
        "adapters/filesystem/apply",
        "adapters/filesystem/follower",
        "adapters/filesystem/frame",
        "adapters/filesystem/journal",
        "adapters/filesystem/rebuild",
        "adapters/filesystem/remaking",
        "adapters/filesystem/removal",
        "adapters/filesystem/ring",
        "adapters/filesystem/settler",
    ),
    "retention": (
        "domain/retention",
        "application/holding",
        "application/housekeeping",
        "application/retain",
        "application/audit/payload_pruning",
    ),
    "trail": (
        "domain/log_check",
        "domain/merkle",
        "domain/note",
        "domain/session_check",
        "domain/tiles",
        "domain/tlogproof",
        "domain/trail",
        "domain/trail_check",
        "domain/treehead",
        "domain/witness",
        "application/trailing",
        "application/audit/audit_log",
        "application/audit/export_source",
        "application/audit/log_keeping",
        "application/audit/log_tiles",
        "adapters/filesystem/order",
        "adapters/filesystem/trail_draft",
        "adapters/filesystem/trails",
    ),
}
#: What looks at several of these modules.
BESIDES = (
    "tests/adapters/filesystem/test_committer.py",
    "tests/adapters/filesystem/test_store.py",
    "tests/conformance/test_committing.py",
    "tests/conformance/test_trailing.py",
    "tests/crash/test_crash_states.py",
    "tests/crash/test_hazards_disk.py",
    "tests/crash/test_large_values.py",
    "tests/application/recovery/test_decision_tree.py",
    "tests/application/test_keyframes.py",
)
#: Cases on these stores are left out: which store there is makes no difference here, but for the time.
OTHER_STORES = ("postgres", "sqlite")


def all_modules() -> list[str]:
    return [module for modules in SUBJECTS.values() for module in modules]


def files_of_tests(root: Path) -> list[str]:
    """Name the mirrored test file of each module, and those that look at several."""
    mirrored = [
        f"tests/{module.rpartition('/')[0]}/test_{module.rpartition('/')[2]}.py" for module in all_modules()
    ]
    return [name for name in dict.fromkeys([*mirrored, *BESIDES]) if (root / name).exists()]
