"""Agents on a Ray cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.domain.errors import ConfigError
from holdfast.execution.engines.landing import Landing
from holdfast.execution.engines.port import WorkerLostError
from holdfast.execution.engines.remote_port import LEASE_SECONDS, POLL_SECONDS


class RayEngine:
    """Runs agents as tasks of Ray, each once: what follows when a worker is lost is not left to Ray."""

    is_remote = True

    def __init__(
        self,
        address: str | None = None,
        *,
        options: Mapping[str, Any] | None = None,
        store: str | None = None,
        lease_seconds: float = LEASE_SECONDS,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        """Connect when there is something to do; a connection that the program made before is used.

        Args:
            address: the cluster; by default what Ray finds, or one of this machine's own.
            options: what each task needs, as for `ray.remote`: `num_cpus`, `resources`, `runtime_env`.
            store: the URL by which workers open the store of a run. PostgreSQL is to be named here.
            lease_seconds: how long a worker may be silent before another one goes on in its place.
            poll_seconds: how often a run looks what the workers do.

        Raises:
            ConfigError: Ray is not installed.
        """
        self._ray = _package()
        self._address = address
        self._options = {**(options or {}), "max_retries": 0, "retry_exceptions": False}
        self._task: Any = None
        self._is_ours = False
        self.store = store
        self.lease_seconds = lease_seconds
        self.poll_seconds = poll_seconds

    def check(self, function: Callable[..., Any]) -> None:
        """Take any function: Ray sends those that workers cannot import."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        """Start a function as a task; cancelling ends the worker process that runs it."""
        ray = self._ray
        if self._task is None:
            self._connect()
        reference = self._task.remote(function, arguments)
        landing = Landing(lambda: ray.cancel(reference, force=True))
        reference.future().add_done_callback(
            lambda source: landing.settle(lambda: _outcome(ray.exceptions, source))
        )
        return landing.future

    def close(self) -> None:
        """Leave the cluster, if it was entered here."""
        self._task = None
        if self._is_ours:
            self._is_ours = False
            self._ray.shutdown()

    def _connect(self) -> None:
        if not self._ray.is_initialized():
            self._ray.init(address=self._address)
            self._is_ours = True
        self._task = self._ray.remote(_call).options(**self._options)


def _call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return function(*arguments)


def _outcome(exceptions: Any, source: Any) -> Any:
    """Answer what a task answered; what befell its worker is told as a lost worker."""
    try:
        return source.result()
    except exceptions.RayTaskError as fault:
        raise fault.cause or fault from None
    except exceptions.RayError as fault:
        raise WorkerLostError(f"{type(fault).__name__}: {_first_line(fault)}") from fault


def _first_line(fault: BaseException) -> str:
    return str(fault).strip().partition("\n")[0]


def _package() -> Any:
    try:
        import ray
        import ray.exceptions
    except ImportError as missing:
        raise ConfigError(
            f"Ray is not installed ({missing.name})",
            place="RayEngine",
            hint="Run `pip install 'holdfast[ray]'`.",
        ) from missing
    return ray
