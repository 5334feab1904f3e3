"""The HTTP API under many clients at once: how long listings and single checkpoints take."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import holdfast
from benchmarks.measure import Row, p50, p95

CLIENTS = 64
SECONDS = 10.0
WORKFLOWS = 50
CHECKPOINTS = 40
URLS = {"files": "{folder}/store", "SQLite": "sqlite:{folder}/store.db"}
PATHS = {
    "list 100 checkpoints": "/v1/checkpoints?limit=100",
    "one checkpoint": "/v1/checkpoints/WF-7@12",
}


def run(folder: Path) -> list[Row]:
    folder.mkdir()
    rows = []
    for name, url in URLS.items():
        store = url.format(folder=folder.resolve())
        token = _filled(store)
        with _serving(store) as base:
            for what, path in PATHS.items():
                rows.append(_row(f"{name}, {what}", *_asked(base, token, path)))
    return rows


def _filled(store: str) -> str:
    """Fill a store, and answer a token that may read it."""
    with holdfast.open(store, retain=False) as service:
        for number in range(WORKFLOWS * CHECKPOINTS):
            service.create_checkpoint(f"WF-{number % WORKFLOWS}", {"n": number}, wait=False)
        service.flush()
        return service.tokens.create("bench", ["viewer"])[1]


@contextmanager
def _serving(store: str) -> Iterator[str]:
    """Run a server in a process of its own."""
    flags = ["--store", store, "--bind", "127.0.0.1:0", "--rate", "1000000", "--json"]
    command = [sys.executable, "-m", "holdfast", "serve", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        assert process.stdout is not None
        try:
            told = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")
            yield told["url"]
        finally:
            process.terminate()


def _asked(base: str, token: str, path: str) -> tuple[list[float], int]:
    """Let all clients ask for a while, each as soon as it was answered."""
    times: list[float] = []
    failures: list[int] = []
    end = time.monotonic() + SECONDS
    given = (base, token, path, end, times, failures)
    threads = [threading.Thread(target=_client, args=given) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times, len(failures)


def _client(base: str, token: str, path: str, end: float, times: list[float], failures: list[int]) -> None:
    connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=60)
    while time.monotonic() < end:
        began = time.perf_counter()
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        answer.read()
        times.append(time.perf_counter() - began)
        if answer.status != 200:
            failures.append(answer.status)
    connection.close()


def _row(what: str, times: list[float], failures: int) -> Row:
    p99 = sorted(times)[int(len(times) * 0.99)]
    told = f"p50 {p50(times) * 1e3:.0f} ms, p95 {p95(times) * 1e3:.0f} ms, p99 {p99 * 1e3:.0f} ms"
    rate = f"{len(times) / SECONDS:.0f}/s, {failures} failed"
    return Row(
        f"HTTP, {CLIENTS} clients for {SECONDS:.0f} s", what, f"{told}, {rate}", "no failure", failures == 0
    )
