"""The team of `holdfast demo`: pretend agents in a process of their own, which the demo kills.

Each step is thought about, then committed with a checkpoint; where a new process goes on is read from the
store and nowhere else. What happens is told as lines of JSON: `begin` before a step, `kept` once it is safe.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass

from holdfast import bootstrap
from holdfast.application.service import CheckpointService
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.state import WorkflowState

QUESTION = "How does kelp survive a storm?"
THINKING_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Step:
    """One piece of work: who does it, and what comes out."""

    stage: str
    agent: str
    result: str
    #: Set where the step is a decision.
    rationale: str = ""


PLAN: tuple[Step, ...] = (
    Step(
        "plan", "planner", "three researchers: grip, stalk, blades", "each part meets the waves differently"
    ),
    Step("research", "researcher-1", "a holdfast is no root: it only holds on"),
    Step("research", "researcher-2", "the stalk bends with a wave and swings back"),
    Step("research", "researcher-3", "blades fold together in fast water"),
    Step("research", "researcher-1", "its branching fingers cling to bare rock"),
    Step("research", "researcher-2", "it stretches before it breaks"),
    Step("research", "researcher-3", "folded blades catch less of the current"),
    Step("research", "researcher-1", "new fingers grow over the old ones"),
    Step("research", "researcher-2", "floats keep its blades up in the light"),
    Step("research", "researcher-3", "a torn blade grows again from its base"),
    Step("write", "writer", "section: grip, hold on to something solid"),
    Step("write", "writer", "section: stalk, give way and come back"),
    Step("write", "writer", "section: blades, lose little and regrow it"),
    Step("write", "writer", "report: hold fast, bend, and start again", "all nine notes agree"),
)
_STAGES = ("plan", "research", "write")


def work(service: CheckpointService, workflow_id: str, thinking_seconds: float = THINKING_SECONDS) -> None:
    """Do every step that the store does not hold yet."""
    state = service.load_latest(workflow_id) or _fresh(workflow_id)
    for number in range(state.current_step + 1, len(PLAN) + 1):
        step = PLAN[number - 1]
        _tell("begin", number)
        # This is where an agent would think, and where the demo kills the process.
        time.sleep(thinking_seconds)
        _carry_out(state, step, number)
        if step.rationale:
            service.record_decision(workflow_id, step.result, rationale=step.rationale, agent_id=step.agent)
        kept = service.create_checkpoint(
            workflow_id, state, type=_moment(number), stage_id=step.stage, agent_id=step.agent
        )
        _tell("kept", number, str(kept))


def _fresh(workflow_id: str) -> WorkflowState:
    return WorkflowState(workflow_id=workflow_id, total_steps=len(PLAN), context={"question": QUESTION})


def _carry_out(state: WorkflowState, step: Step, number: int) -> None:
    """Take the result of a step into the state."""
    state.current_step = number
    state.phase = _STAGES.index(step.stage)
    state.status = "completed" if number == len(PLAN) else "in_progress"
    kept = state.agent_states.setdefault(step.agent, {"status": "working", "results": 0})
    kept["results"] += 1
    if step.rationale:
        state.decisions.append({"agent": step.agent, "description": step.result, "rationale": step.rationale})
    if step.stage == "research":
        state.messages.append({"agent": step.agent, "note": step.result})
    elif step.stage == "write":
        state.outputs.append(step.result)


def _moment(number: int) -> CheckpointType:
    return CheckpointType.WORKFLOW_COMPLETE if number == len(PLAN) else CheckpointType.AGENT_COMPLETE


def _tell(what: str, step: int, checkpoint: str = "") -> None:
    sys.stdout.write(json.dumps({"say": what, "step": step, "checkpoint": checkpoint}) + "\n")
    sys.stdout.flush()


def main(workflow_id: str, store: str | None = None) -> None:
    """Open the store and work until everything is done, or until someone pulls the plug."""
    with bootstrap.open(store) as service:
        work(service, workflow_id)


if __name__ == "__main__":
    # The store is in the environment.
    main(sys.argv[1])
