"""Who counts and traces is what the settings say, and what is missing is named."""

from __future__ import annotations

import subprocess
import sys

import pytest
from prometheus_client import REGISTRY, CollectorRegistry

import holdfast
from holdfast.adapters.telemetry.choosing import observer_for, tracing_for
from holdfast.adapters.telemetry.otel import OtelTracing
from holdfast.adapters.telemetry.prometheus import PrometheusObserver
from holdfast.application.app import App
from holdfast.domain.errors import ConfigError


def test_nobody_does_unless_asked_for() -> None:
    assert observer_for("memory:", is_wanted=False) is None
    assert tracing_for(is_wanted=False, is_drafting=True) is None


def test_the_settings_choose() -> None:
    with holdfast.open("memory:", metrics=True, tracing=True, tracing_gen_ai=True) as service:
        kit = service._engine.kit
        assert isinstance(kit.observer, PrometheusObserver) and kit.observer.registry is REGISTRY
        assert isinstance(kit.tracing, OtelTracing) and kit.tracing.is_drafting
    with holdfast.open("memory:") as service:
        assert service._engine.kit.observer is None and service._engine.kit.tracing is None


def test_a_program_may_bring_its_own() -> None:
    registry = CollectorRegistry()
    app = App(observer=PrometheusObserver("memory", registry))
    with holdfast.open("memory:", app=app, metrics=True) as service:
        service.create_checkpoint("W", {"a": 1})
    labels = {"backend": "memory", "outcome": "ok"}
    assert registry.get_sample_value("holdfast_checkpoint_writes_total", labels) == 1


@pytest.mark.parametrize(
    ("setting", "package", "module", "extra"),
    [
        ("metrics", "prometheus_client", "prometheus", "server"),
        ("tracing", "opentelemetry", "otel", "otel"),
    ],
)
def test_a_package_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, setting: str, package: str, module: str, extra: str
) -> None:
    monkeypatch.delitem(sys.modules, f"holdfast.adapters.telemetry.{module}")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError, match=f"{setting} is on") as refused:
        holdfast.open("memory:", **{setting: True})
    assert f"holdfast[{extra}]" in refused.value.hint


def test_who_asks_for_neither_imports_neither() -> None:
    code = (
        "import sys, holdfast\n"
        "with holdfast.open('memory:') as service: service.create_checkpoint('W', {'a': 1})\n"
        "print([name for name in sys.modules if name.startswith(('prometheus', 'opentelemetry'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
