"""Whoever counts and traces, as the settings want it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.errors import ConfigError

if TYPE_CHECKING:
    from holdfast.domain.telemetry import Observer, Tracing


def observer_for(url: str, *, is_wanted: bool) -> Observer | None:
    """Answer what counts for the /metrics of this process; None where nobody asked for it.

    Raises:
        ConfigError: the package that does it is not installed.
    """
    if not is_wanted:
        return None
    try:
        from holdfast.adapters.telemetry.prometheus import PrometheusObserver
    except ImportError as missing:
        raise _not_installed("metrics", missing, "server") from missing
    return PrometheusObserver(url.partition(":")[0])


def tracing_for(*, is_wanted: bool, is_drafting: bool) -> Tracing | None:
    """Answer what makes spans; None where nobody asked for it.

    Raises:
        ConfigError: the package that does it is not installed.
    """
    if not is_wanted:
        return None
    try:
        from holdfast.adapters.telemetry.otel import OtelTracing
    except ImportError as missing:
        raise _not_installed("tracing", missing, "otel") from missing
    return OtelTracing(is_drafting=is_drafting)


def _not_installed(setting: str, missing: ImportError, extra: str) -> ConfigError:
    return ConfigError(
        f"{setting} is on, and a package for it is not installed ({missing.name})",
        hint=f"Run `pip install 'holdfast[{extra}]'`, or set {setting} to false.",
    )
