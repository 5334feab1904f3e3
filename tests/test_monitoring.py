"""The dashboard, the alerts and the page about metrics name what is really told, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from holdfast.adapters.telemetry.prometheus import PrometheusObserver
from holdfast.application.service import CheckpointService
from holdfast.domain.telemetry import Recovered, RecoveryOutcome
from holdfast.server.metrics import ServerMetrics
from tests import promql
from tests.damage import Spoiler

DOCS = Path(__file__).parent.parent / "docs"
DASHBOARD = json.loads((DOCS / "monitoring" / "grafana.json").read_text(encoding="utf-8"))
# It has no types of its own.
yaml: Any = import_module("yaml")
RULES = yaml.safe_load((DOCS / "monitoring" / "alerts.yaml").read_text(encoding="utf-8"))
PAGE = (DOCS / "metrics.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(holdfast_\w+)` \| (\w+) \|([\w, ]*)\|", re.MULTILINE)
#: Given by Prometheus itself, to every series that it scrapes.
SCRAPED = {"job", "instance"}

Told = dict[str, tuple[str, set[str]]]


@pytest.fixture(scope="module")
def exposition(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a server tells that has done and seen a little of everything."""
    spoiler = Spoiler("file", tmp_path_factory.mktemp("monitoring"))
    spoiler.fill(4)
    spoiler.spoil_record(4)
    with spoiler.opened() as opened:
        kit = replace(opened._engine.kit, observer=PrometheusObserver("file", CollectorRegistry()))
        metrics = _used(CheckpointService(kit))
        text = ""
        while "holdfast_store_numbers_age_seconds" not in text:
            # A busy machine may need longer for the first numbers than a scrape waits for them.
            text = metrics.expose(None)[0].decode()
    return text


def _used(service: CheckpointService) -> ServerMetrics:
    service.recover_workflow("WF")
    for number in range(4):
        service.create_checkpoint("other", {"n": number})
    service.prune_checkpoints("other", 2, 0)
    service.audit.verify()
    service.flush()
    kit = service._engine.kit
    assert kit.observer is not None
    kit.observer.waited(0.1)
    kit.observer.recovered(Recovered(RecoveryOutcome.OK, 0.1))
    metrics = ServerMetrics(kit)
    metrics.observe_request("/v1/checkpoints", "GET", 200, 0.1)
    return metrics


@pytest.fixture(scope="module")
def told(exposition: str) -> Told:
    """Types and labels of all metrics by the names that queries know them by."""
    found: Told = {}
    for family in text_string_to_metric_families(exposition):
        for sample in family.samples:
            if not sample.name.endswith("_created"):
                _, labels = found.setdefault(sample.name, (family.type, set()))
                labels.update(sample.labels)
    return found


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def rules(kind: str) -> list[dict[str, Any]]:
    return [rule for group in RULES["groups"] for rule in group["rules"] if kind in rule]


def expressions() -> Iterator[tuple[str, str]]:
    """Each query with where it stands."""
    for panel in panels():
        for target in panel["targets"]:
            yield f"panel {panel['title']}", target["expr"]
    for rule in (*rules("record"), *rules("alert")):
        yield rule.get("alert") or rule["record"], rule["expr"]


@pytest.mark.parametrize(("place", "expression"), list(expressions()))
def test_every_query_asks_for_what_is_told(told: Told, place: str, expression: str) -> None:
    read = promql.read(expression)
    known = {rule["record"] for rule in rules("record")}
    asked = {name: labels for name, labels in read.metrics.items() if name not in known}
    assert asked.keys() <= told.keys(), place
    for name, labels in asked.items():
        assert labels <= told[name][1] | SCRAPED, place
    labels = set().union(*(told[name][1] for name in asked)) if asked else set()
    assert read.grouped <= labels | SCRAPED, place


@pytest.mark.parametrize(
    "bad",
    [
        "sum(rate(holdfast_x_total[5m])",
        "rate(holdfast_x_total)",
        "holdfast_x holdfast_y",
        "sum by job (holdfast_x)",
        'holdfast_x{kind="a"',
        "unheard_of(holdfast_x[5m])",
        "holdfast_x >",
        "holdfast_x ?",
        "time(1)",
    ],
)
def test_what_is_no_query_is_not_taken_for_one(bad: str) -> None:
    with pytest.raises(AssertionError):
        promql.read(bad)


def test_counters_are_never_shown_without_a_rate(told: Told) -> None:
    for place, expression in expressions():
        for name in promql.read(expression).metrics:
            if name in told and told[name][0] == "counter":
                assert re.search(rf"(?:rate|increase)\({name}\b", expression), (place, name)


def test_the_dashboard_has_a_row_for_each_concern_and_asks_one_chosen_source() -> None:
    rows = [panel["title"] for panel in DASHBOARD["panels"] if panel["type"] == "row"]
    assert rows == ["Writes", "Recoveries", "Storage", "Trail", "HTTP"]
    [variable] = DASHBOARD["templating"]["list"]
    assert (variable["name"], variable["type"], variable["query"]) == (
        "datasource",
        "datasource",
        "prometheus",
    )
    sources = {json.dumps(one["datasource"]) for panel in panels() for one in (panel, *panel["targets"])}
    assert sources == {'{"type": "prometheus", "uid": "${datasource}"}'}


def test_panels_lie_side_by_side() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_every_alert_says_how_bad_it_is_and_what_to_do() -> None:
    for rule in rules("alert"):
        assert rule["labels"]["severity"] in ("info", "warning", "critical"), rule["alert"]
        assert rule["annotations"].keys() == {"summary", "description"}, rule["alert"]
        assert re.fullmatch(r"\d+[mh]", rule.get("for", "1m")), rule["alert"]


def test_every_alert_is_on_the_page() -> None:
    listed = re.findall(r"^\| `(Holdfast\w+)` \|", PAGE, re.MULTILINE)
    assert listed == [rule["alert"] for rule in rules("alert")]


def test_labels_that_an_annotation_shows_are_left_by_its_query() -> None:
    for rule in rules("alert"):
        shown = set(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
        assert shown <= promql.read(rule["expr"]).grouped, rule["alert"]


def test_every_metric_is_on_the_page_as_it_is_told(exposition: str, told: Told) -> None:
    written = {name: (kind, set(labels.replace(",", "").split())) for name, kind, labels in ROW.findall(PAGE)}
    real: Told = {}
    for family in text_string_to_metric_families(exposition):
        name = family.name + "_total" if family.type == "counter" else family.name
        labels = set().union(*(sample.labels.keys() for sample in family.samples)) - {"le"}
        if not name.endswith("_created"):
            real[name] = (family.type, labels)
    assert written == real


def test_the_five_plain_names_lead_to_metrics_and_rules(told: Told) -> None:
    plain = ("checkpoint_write_duration", "checkpoint_size", "recovery_success_rate", "checkpoint_frequency")
    for name in (*plain, "storage_usage"):
        row = re.search(rf"^\| `{name}` \| (.*) \|$", PAGE, re.MULTILINE)
        assert row is not None
        named = set(re.findall(r"`(holdfast[_:][\w:]+)`", row[1]))
        families = {known.removesuffix("_sum") for known in told} | {
            rule["record"] for rule in rules("record")
        }
        assert named and named <= families, name
