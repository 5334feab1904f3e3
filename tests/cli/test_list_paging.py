from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import bootstrap
from holdfast.cli.exits import Exit
from holdfast.cli.list_paging import SORTS
from tests.cli.conftest import Run


def names(run: Run, store: Path, *args: object) -> list[str]:
    """Name the checkpoints, or the workflows, that are listed."""
    data = run("list", *args, "--json", "--store", store).data
    return [one.get("id") or one["workflow_id"] for one in data.get("checkpoints", data.get("workflows"))]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("--agent", "worker-1"), ["WF-1@2"]),
        (("--agent", "nobody"), []),
        (("--session", "s-1"), ["WF-1@1"]),
        (("--status", "failed"), []),
        (("--status", "active"), ["WF-1@3", "WF-1@2", "WF-1@1"]),
        (("--label", "released"), []),
        (("--since", "1h"), ["WF-1@3", "WF-1@2", "WF-1@1"]),
        (("--until", "1h"), []),
        (("--sort", "oldest"), ["WF-1@1", "WF-1@2", "WF-1@3"]),
        (("--sort", "size", "--limit", "1"), ["WF-1@3"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_checkpoints_are_sought_and_sorted(run: Run, store: Path, args, expected):
    assert names(run, store, "WF-1", *args) == expected


def test_workflows_are_sought_by_their_newest_checkpoint_and_sorted(run: Run, store: Path):
    assert names(run, store, "--agent", "worker-2") == ["WF-1"]
    assert names(run, store, "--agent", "worker-1") == []
    assert names(run, store, "--sort", "name") == ["WF-1", "WF-2"]
    assert names(run, store, "--sort", "size") == ["WF-1", "WF-2"]
    assert names(run, store, "--since", "1h", "--sort", "oldest") == ["WF-1", "WF-2"]
    assert run("list", "--status", "failed", "--store", store).err == "Nothing is like that.\n"


def test_workflows_are_sought_by_a_label_that_any_checkpoint_was_given(run: Run, store: Path):
    with bootstrap.open(str(store)) as service:
        service.annotate("WF-1@1", labels=["released"])
        service.annotate("WF-2@1", labels=["released"])
        service.annotate("WF-2@1", labels=[])
    assert names(run, store, "--label", "released") == ["WF-1"]
    assert names(run, store, "--label", "released", "--status", "active") == ["WF-1"]
    assert names(run, store, "--label", "released", "--status", "completed") == []
    assert names(run, store, "--label", "nothing") == []
    assert names(run, store, "WF-1", "--label", "released") == ["WF-1@1"]


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("workflow", [(), ("WF-1",)], ids=["workflows", "checkpoints"])
def test_page_after_page_everything_is_listed_once(run: Run, store: Path, workflow, sort):
    args = (*workflow, "--sort", sort)
    whole, pages, cursor = names(run, store, *args), [], None
    while True:
        more = ("--cursor", cursor) if cursor else ()
        page = run("list", *args, "--limit", 1, *more, "--json", "--store", store).data
        pages += [
            one.get("id") or one["workflow_id"] for one in page.get("checkpoints", page.get("workflows"))
        ]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert pages == whole


def test_a_page_goes_on_where_it_ended_though_something_newer_came(run: Run, store: Path):
    first = run("list", "WF-1", "--limit", 1, "--json", "--store", store).data
    with bootstrap.open(str(store)) as service:
        service.create_checkpoint("WF-1", {"more": 1})
    assert names(run, store, "WF-1", "--cursor", first["next_cursor"]) == ["WF-1@2", "WF-1@1"]


def test_a_cursor_of_another_listing_is_refused(run: Run, store: Path):
    cursor = run("list", "--limit", 1, "--json", "--store", store).data["next_cursor"]
    for args in (("WF-1", "--cursor", cursor), ("--cursor", "x"), ("--sort", "size", "--cursor", cursor)):
        assert run("list", *args, "--store", store).exit_code == Exit.USAGE
