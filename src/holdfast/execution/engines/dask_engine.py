"""Agents on a Dask cluster."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.domain.errors import ConfigError
from holdfast.execution.engines.landing import Landing
from holdfast.execution.engines.port import WorkerLostError
from holdfast.execution.engines.remote_port import LEASE_SECONDS, POLL_SECONDS


class DaskEngine:
    """Runs agents as tasks of Dask.

    The scheduler of Dask starts the tasks of a lost worker again, on its own, unless its setting
    `distributed.scheduler.allowed-failures` is 0. An agent notices that it was begun before and leaves it to
    the run, which sends it anew; so it does no harm.
    """

    is_remote = True

    def __init__(
        self,
        client: Any,
        *,
        options: Mapping[str, Any] | None = None,
        store: str | None = None,
        lease_seconds: float = LEASE_SECONDS,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        """Take a cluster; one that is named by its address is connected to when there is something to do.

        Args:
            client: a `distributed.Client`, or the address of a scheduler.
            options: what each task needs, as for `Client.submit`: `resources`, `workers`, `priority`.
            store: the URL by which workers open the store of a run. PostgreSQL is to be named here.
            lease_seconds: how long a worker may be silent before another one goes on in its place.
            poll_seconds: how often a run looks what the workers do.

        Raises:
            ConfigError: Dask is not installed, or the client is one for coroutines.
        """
        self._distributed = _package()
        if getattr(client, "asynchronous", False):
            raise ConfigError(
                "a client for coroutines belongs to one loop",
                place="DaskEngine",
                hint="Give an address, or a client that was made without asynchronous=True.",
            )
        self._client: Any = None if isinstance(client, str) else client
        self._address = client if isinstance(client, str) else None
        self._options = {**(options or {}), "pure": False, "retries": 0}
        self.store = store
        self.lease_seconds = lease_seconds
        self.poll_seconds = poll_seconds

    def check(self, function: Callable[..., Any]) -> None:
        """Take any function: Dask sends those that workers cannot import."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        """Start a function as a task; cancelling keeps one that has not begun from beginning."""
        if self._client is None:
            self._client = self._distributed.Client(self._address, set_as_default=False)
        key = f"holdfast-{secrets.token_hex(8)}"
        task = self._client.submit(function, *arguments, key=key, **self._options)
        landing = Landing(lambda: task.cancel(force=True))
        task.add_done_callback(lambda done: landing.settle(lambda: _outcome(self._distributed, done)))
        return landing.future

    def close(self) -> None:
        """Leave the cluster, if it was entered here."""
        if self._address is not None and self._client is not None:
            client, self._client = self._client, None
            client.close()


def _outcome(distributed: Any, task: Any) -> Any:
    """Answer what a task answered; what befell its worker is told as a lost worker."""
    if task.cancelled():
        raise WorkerLostError("the scheduler has given the task up")
    try:
        return task.result()
    except distributed.KilledWorker as fault:
        raise WorkerLostError(f"{fault.last_worker} is gone") from fault
    except asyncio.CancelledError as fault:
        raise WorkerLostError(f"the scheduler has given the task up: {fault}") from fault


def _package() -> Any:
    try:
        import distributed
    except ImportError as missing:
        raise ConfigError(
            f"Dask is not installed ({missing.name})",
            place="DaskEngine",
            hint="Run `pip install 'holdfast[dask]'`.",
        ) from missing
    return distributed
