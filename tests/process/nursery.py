"""A process that has imported what the loops need, and forks one process for each: importing takes longer
than many of them run. It has no threads, so that it may.

`python -m tests.process.nursery` reads orders as lines of JSON, and answers each with two lines: the id of
the process that carries it out, and its exit status.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import sys
from typing import Any


def main() -> None:
    orders = os.fdopen(os.dup(0), "rb", buffering=0)
    while line := orders.readline():
        order = json.loads(line)
        importlib.import_module(order["module"])
        child = os.fork()
        if not child:
            # From here on this is the process that was ordered, and ends as any other does.
            orders.close()
            carry_out(order)
            return
        answer(child)
        answer(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def carry_out(order: dict[str, Any]) -> None:
    """Run a module as a program of its own."""
    for number, path in enumerate((os.devnull, order["out"], order["err"])):
        handle = os.open(path, os.O_RDWR)
        os.dup2(handle, number)
        os.close(handle)
    os.environ.clear()
    os.environ.update(order["env"])
    sys.argv = [order["module"], *order["arguments"]]
    del sys.modules[order["module"]]
    runpy.run_module(order["module"], run_name="__main__", alter_sys=True)


def answer(number: int) -> None:
    os.write(1, b"%d\n" % number)


if __name__ == "__main__":
    main()
