"""What is measured, by the process of the contender itself. Needs the standard library alone.

Every workload opens a place that nobody has used, saves, closes, opens it again and compares what comes back
with what was saved; whoever restores something else fails the run.
"""

from __future__ import annotations

import gc
import statistics
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from benchmarks.compare.contender import Contender, NoneSuchError, NotEqualError
from benchmarks.compare.disk import bytes_at
from benchmarks.compare.states import Changed, State, constant, turns, with_images

Make = Callable[[str, int], Contender]
Answer = dict[str, Any]

WORKFLOW = "one"
RESTORES = 5
LISTED = 100
KEPT = 10
WRITTEN_BYTES = 20_000
#: The cost at a mark is the median of so many turns before it.
MARKED_TURNS = 50


def constant_state(make: Make, url: str, *, size: int, steps: int) -> Answer:
    """Save a state that stays as large as it is; restore, list, compare, prune."""
    return _kept(make, url, constant(size, steps), has_upkeep=True)


def images(make: Make, url: str, *, steps: int) -> Answer:
    """Save a state that has the same image five times."""
    return _kept(make, url, with_images(steps), has_upkeep=False)


def _kept(make: Make, url: str, states: Iterable[tuple[State, Changed]], *, has_upkeep: bool) -> Answer:
    empty, contender = bytes_at(url), make(url, 1)
    commits: list[float] = []
    saved: list[State] = []

    def body() -> None:
        for step, (state, changed) in enumerate(states):
            commits.append(_timed(partial(contender.save, WORKFLOW, step, state, changed)))
            saved[:] = [state]

    used = time.process_time()
    contender.within(WORKFLOW, body)
    used = time.process_time() - used
    contender.close()
    answer: Answer = {"commits": commits, "bytes": bytes_at(url) - empty, "cpu_seconds": used / len(commits)}
    answer["restores"] = [_reopened(make, url, saved[0]) for _ in range(RESTORES)]
    if has_upkeep:
        answer |= _upkeep(make(url, 1), saved[0])
        answer["bytes_after_retention"] = bytes_at(url) - empty
    return answer


def _reopened(make: Make, url: str, saved: State) -> float:
    """Time the first restore after opening: what an earlier one left in memory must not help."""
    contender = make(url, 1)
    seconds = _timed(partial(_restored, contender, saved))
    contender.close()
    return seconds


def _restored(contender: Contender, saved: State) -> None:
    if contender.restore(WORKFLOW) != saved:
        raise NotEqualError("the newest state that was restored is not the one that was saved")


def _upkeep(contender: Contender, saved: State) -> Answer:
    answer: Answer = {
        "list": _one_of(lambda: contender.listed(WORKFLOW, LISTED)),
        "diff": _one_of(lambda: contender.differences(WORKFLOW)),
        "prune": _one_of(lambda: contender.prune(WORKFLOW, KEPT)),
    }
    _restored(contender, saved)
    contender.close()
    return answer


def _one_of(call: Callable[[], int | str]) -> Answer:
    """Time one call, or tell that the contender has no such thing."""
    began = time.perf_counter()
    try:
        told = call()
    except NoneSuchError as error:
        return {"none": str(error)}
    return {"seconds": time.perf_counter() - began, "told": told}


def chat(make: Make, url: str, *, marks: list[int], budget_seconds: float) -> Answer:
    """Talk until there were so many turns, or the time is over; look at the disk at every mark."""
    empty, talk = bytes_at(url), Talk(make(url, 1))

    def body() -> None:
        for turn, added in enumerate(turns(marks[-1]), start=1):
            talk.turn(turn, added)
            if turn in marks:
                talk.pause()
                talk.marks.append({"turns": turn, "bytes": bytes_at(url) - empty, "p50_seconds": talk.p50()})
                talk.go_on(make, url)
            if sum(talk.commits) > budget_seconds:
                break

    talk.contender.within(WORKFLOW, body)
    talk.contender.close()
    told: Answer = {"commits": talk.commits, "turns": len(talk.commits), "marks": talk.marks}
    told["bytes"] = bytes_at(url) - empty
    contender = make(url, 1)
    told["restore"] = _one_of(lambda: _heard(contender, talk.said))
    contender.close()
    return told


class Talk:
    """A chat that grows."""

    def __init__(self, contender: Contender) -> None:
        self.contender = contender
        self.said: list[dict[str, str]] = []
        self.commits: list[float] = []
        self.marks: list[Answer] = []

    def turn(self, number: int, added: list[dict[str, str]]) -> None:
        self.said = [*self.said, *added]
        state = {"messages": self.said}
        self.commits.append(_timed(partial(self.contender.say, WORKFLOW, number, state, added)))

    def p50(self) -> float:
        return statistics.median(self.commits[-MARKED_TURNS:])

    def pause(self) -> None:
        """Let go of what is only there while a place is open: a log to be merged, room that was reserved."""
        if not self.contender.is_executor:
            self.contender.close()

    def go_on(self, make: Make, url: str) -> None:
        if not self.contender.is_executor:
            self.contender = make(url, 1)


def _heard(contender: Contender, said: list[dict[str, str]]) -> int:
    heard = contender.heard(WORKFLOW)
    if heard != said:
        raise NotEqualError(f"of {len(said)} messages of the chat {len(heard)} came back, or others")
    return len(heard)


def writers(make: Make, url: str, *, count: int, each: int) -> Answer:
    """Save from many threads at once, each to a workflow of its own."""
    contender = make(url, count)
    # Made beforehand, so that making them is not measured.
    states = list(constant(WRITTEN_BYTES, each + 1))
    start, errors = threading.Barrier(count + 1), list[BaseException]()

    def body(workflow: str) -> None:
        contender.save(workflow, 0, *states[0])
        start.wait()
        for step in range(1, each + 1):
            contender.save(workflow, step, *states[step])

    def work(workflow: str) -> None:
        try:
            contender.within(workflow, partial(body, workflow))
        except BaseException as error:
            errors.append(error)
            start.abort()
        finally:
            contender.leave_thread()

    threads = [threading.Thread(target=work, args=(f"w{number}",)) for number in range(count)]
    for thread in threads:
        thread.start()
    seconds = _joined(start, threads)
    if errors:
        raise next((e for e in errors if not isinstance(e, threading.BrokenBarrierError)), errors[0])
    contender.close()
    _all_there(make(url, 1), count, states[-1][0])
    return {"per_second": count * each / seconds, "seconds": seconds}


def _joined(start: threading.Barrier, threads: list[threading.Thread]) -> float:
    try:
        start.wait()
    except threading.BrokenBarrierError:
        # Whoever broke it tells why.
        began = time.perf_counter()
    else:
        began = time.perf_counter()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began


def _all_there(contender: Contender, count: int, saved: State) -> None:
    for number in range(count):
        if contender.restore(f"w{number}") != saved:
            raise NotEqualError(f"the newest state of writer {number} is not the one that it saved")
    contender.close()


def _timed(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def run(make: Make, url: str, workload: str, arguments: Answer) -> Answer:
    """Measure one workload; what the one before left behind is collected first."""
    gc.collect()
    return WORKLOADS[workload](make, url, **arguments)


WORKLOADS: dict[str, Callable[..., Answer]] = {
    "constant": constant_state,
    "images": images,
    "chat": chat,
    "writers": writers,
}
