"""One workflow that runs in process after process, killed wherever it is, and what has to be true of it."""

from __future__ import annotations

import json
import select
import signal
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast import RunOptions
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import AgentFailedError, EffectUnknownError
from holdfast.domain.event import Event
from holdfast.domain.reducers import DECISION_EVENT
from holdfast.domain.run_events import open_questions
from tests.process.child import Child, Report, start
from tests.process.executor_broken import BREAKS
from tests.process.executor_team import BEFORE, GATHERED, PARTS, SKIPPED, STEPS, SURE, make_team
from tests.process.outside import Outside
from tests.process.recovery_children import kill_at
from tests.recovery.places import Place

LIVES_MAX = 60
#: What may be different after a crash: when it was, how long it took, and how often it was tried.
_TIMES = ("attempt", "ended_at", "duration_seconds")


@dataclass(frozen=True)
class Life:
    """How one process shall run: killed at a write, or after a while, or not at all."""

    write: int = 0
    is_after: bool = False
    after_seconds: float = 0.0
    #: How long an effect takes on its way, and on its way back.
    pace_seconds: float = 0.0
    #: What its agents do about an effect that may have happened and shall end the run.
    in_doubt: str = "fail"
    #: Name of what is broken in it, for the negative controls.
    broken: str | None = None


def child(report: Report, stop: int, url: str, outside: str, workflow_id: str, life: Life) -> None:
    """Run the workflow once, and report how that ended."""
    if life.broken is not None:
        BREAKS[life.broken]()
    if life.write:
        kill_at(life.write, after=life.is_after)
    options = RunOptions(waits=False, config={"in_doubt": life.in_doubt})
    try:
        result = make_team(outside, life.pace_seconds).run_sync(
            url, workflow_id, {"for": "all"}, options=options
        )
    except AgentFailedError as problem:
        is_doubt = isinstance(problem.__cause__, EffectUnknownError)
        report.say("doubt" if is_doubt else "failed", workflow_id, 0, str(problem))
        return
    told = {"results": result.results, "value": result.value, "outputs": _sorted(result.outputs)}
    told |= {"metrics": _lasting(result.metrics), "confidence": result.confidence}
    report.say(str(result.status), workflow_id, result.ran, json.dumps(told, sort_keys=True))


@dataclass
class Trial:
    """One workflow, from its first process to its last."""

    place: Place
    outside: Outside
    workflow_id: str
    broken: str | None = None
    kills: int = 0
    lives: int = 0
    #: How often an effect was unknown, by the policy that decided.
    unknown: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    #: Steps and milestones that are durable, with how often their bodies had run when that was seen.
    _committed: dict[str, int] = field(default_factory=dict)
    _in_doubt: str = "fail"
    told: Any = None

    def live(self, life: Life) -> str:
        """Let one process run; answers how it ended, and looks at what it left."""
        self.lives += 1
        given = replace(life, in_doubt=self._in_doubt, broken=self.broken)
        process = start(child, self.place.url, self.outside.path, self.workflow_id, given)
        if life.after_seconds:
            _kill_after(process, life.after_seconds)
        status = process.end()
        word, _, rest = (process.lines[-1] if process.lines else "").partition(" ")
        if status == -signal.SIGKILL:
            self.kills += 1
            word = "killed"
        elif status != 0 or word == "failed":
            self.problems.append(f"life {self.lives} ended with {status}: {word} {rest}")
        elif word == "completed":
            self.told = json.loads(rest.partition("{")[1] + rest.partition("{")[2])
        self.look()
        return word

    def live_on(self) -> None:
        """Let processes run until one is done, with people who answer what is asked."""
        while self.lives < LIVES_MAX:
            word = self.live(Life())
            if word == "completed" or self.problems:
                return
            self.help(word)
        self.problems.append(f"it is not done after {LIVES_MAX} lives")

    def help(self, word: str) -> None:
        """Do what a person would do who looks at the other side."""
        if word == "doubt":
            self.unknown["unknown: fail"] += 1
            self._in_doubt = "retry"
        if word != "waiting":
            return
        answers = self.outside.story(self.workflow_id)["answers"]
        with self.place.open() as service:
            for step_id, name, asked in open_questions(self.state(service).to_fields()):
                self.unknown["unknown: ask"] += 1
                happened = answers.get(asked["data"]["key"])
                data = {"granted": happened is None, "name": name, "step": step_id, "value": happened}
                service.requests.put(self.workflow_id, "approval", actor="ada", data=data)

    def look(self) -> None:
        """Compare what is durable with what happened outside, after a process has ended."""
        with self.place.open() as service:
            events = service.events(self.workflow_id)
        story = self.outside.story(self.workflow_id)
        bodies = Counter(story["bodies"])
        for step, count in self._committed.items():
            if bodies[step] != count:
                self.problems.append(f"{step} ran {bodies[step] - count} times more, after it was committed")
        self._committed = {one: bodies[one] for one in (*_completed(events), *_milestones(events))}
        self._check_order(bodies)
        self._check_starts(events, bodies, story)

    def _check_order(self, bodies: Counter[str]) -> None:
        for what in bodies:
            step = what.partition("/")[0]
            left = [one for one in BEFORE.get(step, ()) if one not in self._committed]
            self.problems += [f"{step} began while the result of {one} was not durable" for one in left]

    def _check_starts(self, events: list[Event], bodies: Counter[str], story: dict[str, Any]) -> None:
        started = _starts(events)
        for what, count in bodies.items():
            if "/" not in what and count > started[what]:
                self.problems.append(f"{what} ran {count} times and was recorded {started[what]} times")
        keys = {event.data["key"] for event in events if event.type == "EFFECT_STARTED"}
        if strange := set(story["calls"]) - keys:
            self.problems.append(f"effects were called that are in no ledger: {sorted(strange)}")

    def check(self, expected: Any) -> None:
        """Compare the end with that of a run that nobody disturbed."""
        if self.problems:
            return
        if self.told != expected["told"]:
            self.problems.append(f"another result: {self.told}")
        with self.place.open() as service:
            events, state = service.events(self.workflow_id), self.state(service)
            again = make_team(self.outside.path).run_sync(service, self.workflow_id)
            report = service.progress.text(self.workflow_id), service.progress.rebuild(self.workflow_id)
        found = description(state)
        if found != expected["state"]:
            self.problems.append(f"another state: {_difference(found, expected['state'])}")
        if again.ran or not again.resumed or not again.is_completed or state.resumable:
            self.problems.append("it ran, although it was over")
        completed = Counter(_completed(events))
        if completed != Counter(STEPS):
            self.problems.append(f"results were recorded more than once, or not at all: {completed}")
        self._check_report(*report)
        self._check_decisions(events, expected["decisions"])
        self._check_effects(events)

    def _check_report(self, found: str, rebuilt: str) -> None:
        """Each agent has one section; what a killed process left behind is there when it is made anew."""
        sections, anew = (
            Counter(line[3:] for line in text.splitlines() if line.startswith("## "))
            for text in (found, rebuilt)
        )
        if anew != Counter(STEPS) or sections - anew:
            self.problems.append(f"the report for people has other sections: {sections}")

    def _check_decisions(self, events: list[Event], expected: list[str]) -> None:
        """Each decision is there, and once for each attempt that made it at most."""
        attempts = _starts(events)
        made = decisions(events)
        if set(made) != set(expected):
            self.problems.append(f"other decisions: {sorted(set(made) ^ set(expected))}")
        for told, count in Counter(made).items():
            if count > attempts[told.partition(": ")[0]]:
                self.problems.append(f"a decision was recorded {count} times: {told}")

    def _check_effects(self, events: list[Event]) -> None:
        story = self.outside.story(self.workflow_id)
        done = Counter(story["done"])
        twice = [what for what, count in done.items() if count > 1]
        missing = [what for what in SURE if not done[what]]
        if twice or missing:
            self.problems.append(f"effects that happened twice: {twice}, or not at all: {missing}")
        if story["keyless"]:
            self.problems.append(f"{story['keyless']} effects came without a key")
        else:
            self._check_policies(events, Counter(story["calls"]), done)

    def _check_policies(self, events: list[Event], calls: Counter[str], done: Counter[str]) -> None:
        """Only what was told to be retried may have been called more than once."""
        begun = [event for event in events if event.type == "EFFECT_STARTED"]
        keys, starts = {one.step_id: one.data["key"] for one in begun}, Counter(one.step_id for one in begun)
        settled = Counter(
            (event.step_id, event.data.get("settled_by")) for event in events if event.type == "EFFECT_DONE"
        )
        for step in (SKIPPED, "doubt", "draft", "draft#2"):
            if calls[keys[step]] > 1:
                self.problems.append(f"{step} was called {calls[keys[step]]} times")
        skipped = settled[SKIPPED, "skip"]
        if starts[SKIPPED] > 1 or (not done[SKIPPED] and not skipped):
            self.problems.append("an effect was left out that was not unknown, or begun again")
        again = sum(count - 1 for step, count in starts.items() if step in ("order", *GATHERED))
        checked = sum(settled[step, "check"] + starts[step] - 1 for step in ("draft", "draft#2"))
        self.unknown.update({"unknown: skip": skipped, "unknown: retry": again, "unknown: check": checked})

    def state(self, service: CheckpointService) -> Any:
        return service.recording.ended(self.workflow_id) or service.recording.recover(self.workflow_id).state


def description(state: Any) -> dict[str, Any]:
    """Tell what a state says, but for times and attempts; what ran at once is sorted."""
    agents = {
        step: {name: value for name, value in known.items() if name not in _TIMES}
        for step, known in state.agent_states.items()
    }
    told = {
        "tasks": _sorted({name: task[name] for name in task if name not in _TIMES} for task in state.tasks),
        "outputs": _sorted(state.outputs),
        "messages": _sorted(state.messages),
        "metrics": _lasting(state.metrics),
        "confidence": state.confidence,
        "context": state.context,
        "agents": agents,
        "stages": state.stage_states,
        "rest": [state.status, state.resumable, state.phase, state.current_step, state.total_steps],
        "graph": state.dag_structure,
    }
    plain: dict[str, Any] = json.loads(json.dumps(told, sort_keys=True))
    return plain


def decisions(events: list[Event]) -> list[str]:
    """Tell who decided what."""
    made = (event for event in events if event.type == DECISION_EVENT)
    return [f"{event.step_id}: {event.data['description']}" for event in made]


def _starts(events: list[Event]) -> Counter[str]:
    """Count the attempts that were recorded; one in a row is recorded with the result before it."""
    alone = [str(event.step_id) for event in events if event.type == "AGENT_STARTED"]
    ridden = [event.data["next"]["step_id"] for event in events if "next" in event.data]
    return Counter(alone + ridden)


def _completed(events: list[Event]) -> list[str]:
    return [str(event.step_id) for event in events if event.type == "AGENT_COMPLETED"]


def _milestones(events: list[Event]) -> set[str]:
    reached = [event.data["name"] for event in events if event.type == "MILESTONE_REACHED"]
    return {f"long/{part}" for part in PARTS if part in reached}


def _difference(found: dict[str, Any], expected: dict[str, Any]) -> str:
    differs = {name: (found[name], expected[name]) for name in expected if found[name] != expected[name]}
    return str(differs)[:600]


def _sorted(values: Any) -> list[Any]:
    return sorted(values, key=lambda value: json.dumps(value, sort_keys=True))


def _lasting(metrics: Any) -> dict[str, Any]:
    return {name: value for name, value in metrics.items() if name != "elapsed_seconds"}


def _kill_after(process: Child, seconds: float) -> None:
    """Kill a process after a while, unless it ends before."""
    select.select([process.handle], [], [], seconds)
    process.kill()
