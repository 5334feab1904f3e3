"""The world outside: a process of its own that counts what is done to it, and by whom.

`python -m tests.process.outside SOCKET` serves until its input ends. An effect with a key that is known
is answered with what it answered first, and counted as one more call; without a key nobody can tell it from
a second one. It also counts how often each body of an agent ran, and how many worked at once.
"""

from __future__ import annotations

import json
import os
import socket
import socketserver
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.process.running import ROOT

# -- in the process --------------------------------------------------------------------------------


@dataclass
class Story:
    """What happened outside in the name of one workflow."""

    bodies: Counter[str] = field(default_factory=Counter)
    #: Calls and the first answer, by key; what was done, by step and name.
    calls: Counter[str] = field(default_factory=Counter)
    answers: dict[str, str] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)
    keyless: int = 0
    inside: set[str] = field(default_factory=set)
    together: int = 0

    def effect(self, what: str, key: str | None) -> str:
        """Do something, unless it was done under this key."""
        answer = f"done: {what}"
        if key is None:
            self.keyless += 1
        else:
            self.calls[key] += 1
        if key is None or key not in self.answers:
            self.done[what] += 1
        return answer if key is None else self.answers.setdefault(key, answer)

    def check(self, key: str) -> str | None:
        """Answer what was done under a key."""
        return self.answers.get(key)

    def body(self, what: str) -> None:
        """Count that something began to run."""
        self.bodies[what] += 1

    def enter(self, who: str) -> None:
        """Note who works; those who were killed are not inside."""
        self.inside = {one for one in self.inside if one == who or _is_alive(one)} | {who}
        self.together = max(self.together, len(self.inside))

    def leave(self, who: str) -> None:
        """Note who works no more."""
        self.inside.discard(who)

    def told(self) -> dict[str, Any]:
        """Tell everything."""
        names = ("bodies", "calls", "answers", "done", "keyless", "together")
        return {name: getattr(self, name) for name in names}


def _is_alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    return True


def serve(path: str) -> None:
    stories: dict[str, Story] = {}

    class Answering(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            line = self.rfile.readline()
            if not line:
                # Whoever called was killed before it said anything.
                return
            order = json.loads(line)
            story = stories.setdefault(order["workflow"], Story())
            answer = getattr(story, order["do"])(**order["given"])
            try:
                self.wfile.write(json.dumps(answer).encode() + b"\n")
            except BrokenPipeError:
                return

    class Server(socketserver.UnixStreamServer):
        request_queue_size = 256

    # Whoever started it may be killed: then this ends as well.
    threading.Thread(target=_end_with_input, daemon=True).start()
    with Server(path, Answering) as server:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        server.serve_forever()


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


# -- for everybody else ----------------------------------------------------------------------------


def tell(path: str, workflow_id: str, do: str, **given: Any) -> Any:
    """Have something done outside, and answer what came of it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(path)
        order = {"workflow": workflow_id, "do": do, "given": given}
        connection.sendall(json.dumps(order).encode() + b"\n")
        with connection.makefile("rb") as answers:
            return json.loads(answers.readline())


class Outside:
    """The process, as long as it is needed."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "outside.sock")
        command = [sys.executable, "-m", "tests.process.outside", self.path]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe)

    def __enter__(self) -> Outside:
        assert self._process.stdout is not None and self._process.stdout.readline() == b"ready\n"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def story(self, workflow_id: str) -> dict[str, Any]:
        """Answer what happened in the name of a workflow."""
        told: dict[str, Any] = tell(self.path, workflow_id, "told")
        return told


if __name__ == "__main__":
    serve(sys.argv[1])
