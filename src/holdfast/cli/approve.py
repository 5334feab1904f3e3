"""`holdfast approve`: answer what a workflow waits for, or list what all of them wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.changing import Change, changes, tell_plan
from holdfast.cli.exits import Exit, Failure
from holdfast.cli.group import Call, StoreCommand, did_you_mean
from holdfast.cli.listing import time_text
from holdfast.cli.opening import entry_of, find_workflow, reading, tell, writing
from holdfast.cli.output import safe
from holdfast.cli.run_inputs import read_answer
from holdfast.cli.run_options import resume_command
from holdfast.cli.run_standing import runner_of
from holdfast.domain.audit_type import AuditType
from holdfast.domain.plainjson import as_json_tree

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.application.insight.questions import OpenQuestion
    from holdfast.application.kit import Kit


@click.command("approve", cls=StoreCommand)
@click.argument("workflow_id", metavar="[ID]", required=False)
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--list", "is_list", is_flag=True, help="List the open questions, of ID or of all workflows.")
@click.option("--step", metavar="STEP", help="The step that asks, where several ask the same.")
@click.option("--deny", is_flag=True, help="Say no.")
@click.option("--value", metavar="JSON", help="A value for the agent, as JSON or as text.")
@click.option("--note", metavar="TEXT", help="The same as --reason.")
@click.option("--by", metavar="NAME", help="Who answers. [default: your login name]")
@changes()
def command(
    call: Call,
    workflow_id: str | None,
    name: str | None,
    is_list: bool,
    step: str | None,
    change: Change,
    **answer: Any,
) -> None:
    """Answer what a workflow waits for.

    NAME and --step may be left out where there is one open question. The
    workflow need not run: the answer waits for it. Ends with 4 if there is no
    such question, or it was answered before.

    \b
    Example:
      holdfast approve WF-2026-001 publish --reason "read and found good"
      holdfast approve --list
    """
    if is_list:
        if name or step or change != Change() or any(answer.values()):
            raise click.UsageError("--list takes no more than the ID of a workflow")
        _list(call, workflow_id)
        return
    if workflow_id is None:
        raise click.UsageError("name the ID to answer; `holdfast approve --list` shows what is asked")
    question, is_run = _found(call, workflow_id, name, step)
    _answer(call, question, change, is_run=is_run, **answer)


def _answer(
    call: Call,
    question: OpenQuestion,
    change: Change,
    *,
    is_run: bool,
    deny: bool,
    value: str | None,
    note: str | None,
    by: str | None,
) -> None:
    """Leave the answer for whoever runs the workflow."""
    data: dict[str, Any] = {"granted": not deny, "name": question.name, "step": question.step_id}
    if value is not None:
        data["value"] = read_answer(value, "--value")
    told = {"workflow_id": question.workflow_id, "step_id": question.step_id, "name": question.name}
    where = f"{safe(question.name)} of {safe(question.workflow_id)} {safe(question.step_id)}"
    word = call.output.paint("denied", "bad") if deny else call.output.paint("granted", "good")
    if change.dry_run:
        tell_plan(call.output, f"{where} would be {word}", **told, granted=not deny)
        return
    with writing(call) as service:
        request = service.requests.put(
            question.workflow_id, "approval", actor=by, reason=change.reason or note, data=data
        )
    if call.output.as_json:
        call.output.data(
            {**told, "granted": not deny, "by": request.actor, "request": request.id, "is_running": is_run}
        )
        return
    call.output.line(f"{where} {word}")
    if not is_run:
        again = resume_command(call, question.workflow_id)
        call.output.note(f"Nobody runs it: `{safe(again)}` goes on with the answer.")


def _found(call: Call, workflow_id: str, name: str | None, step: str | None) -> tuple[OpenQuestion, bool]:
    """Find the question that is meant, and tell whether somebody runs its workflow."""
    from holdfast.application.insight.questions import questions_of
    from holdfast.cli.open_questions import answers_under_way

    with reading(call) as kit:
        find_workflow(kit, workflow_id)
        questions = questions_of(kit, workflow_id, answers_under_way(call, workflow_id))
        is_run = runner_of(kit, workflow_id) is not None
    meant = [one for one in questions if name in (None, one.name) and step in (None, one.step_id)]
    if not meant:
        raise _no_question(workflow_id, name, step, questions)
    if len(meant) > 1:
        listed = "; ".join(f"{one.name} --step {one.step_id}" for one in meant)
        raise click.UsageError(f"several questions are open: {listed}. Say which one is meant")
    answer = meant[0].answer
    if answer is not None:
        raise Failure(
            "no_such_question",
            Exit.NOT_FOUND,
            f"the question was answered by {answer.actor}, and the answer waits to be taken in",
            place=f"{workflow_id} {meant[0].step_id} {meant[0].name}",
            hint=f"Go on with `{resume_command(call, workflow_id)}`." if not is_run else "",
        )
    return meant[0], is_run


def _no_question(
    workflow_id: str, name: str | None, step: str | None, questions: Iterable[OpenQuestion]
) -> Failure:
    words = " ".join(word for word in (workflow_id, step, name) if word)
    names = [one.name for one in questions]
    known = did_you_mean(name or "", names) or (f"Open are: {', '.join(names)}." if names else "")
    return Failure(
        "no_such_question",
        Exit.NOT_FOUND,
        "there is no such open question",
        place=words,
        hint=known or "It was answered, or has not been asked yet; see `holdfast approve --list`.",
    )


def _list(call: Call, workflow_id: str | None) -> None:
    """Tell what is asked, by whom, and since when."""
    with reading(call) as kit:
        if workflow_id is not None:
            find_workflow(kit, workflow_id)
        questions, unreadable = _questions(call, kit, workflow_id)
        asking = dict.fromkeys(one.workflow_id for one in questions)
        tell(call, kit, [entry_of(kit, AuditType.STATE_READ, one) for one in asking])
    if call.output.as_json:
        call.output.data({"questions": [_fields(one) for one in questions], "unreadable": unreadable})
        return
    if not questions:
        known = "Nothing that can be read waits" if unreadable else "Nothing waits"
        call.output.note(f"{known} for an answer.")
        return
    head = ("WORKFLOW", "STEP", "NAME", "SINCE (UTC)", "QUESTION", "ANSWER")
    call.output.table(head, map(_row, questions))


def _questions(call: Call, kit: Kit, workflow_id: str | None) -> tuple[list[OpenQuestion], list[str]]:
    """Find what is asked, and name the workflows of which that cannot be known."""
    from holdfast.application.insight.questions import OpenQuestion, all_questions, questions_of
    from holdfast.cli.open_questions import answers_under_way

    answers = answers_under_way(call, workflow_id)
    if workflow_id is not None:
        return questions_of(kit, workflow_id, answers), []
    questions, unreadable = [], []
    for one in all_questions(kit, answers):
        if isinstance(one, OpenQuestion):
            questions.append(one)
        else:
            click.echo(f"warning: {safe(one[0])} cannot be read: {safe(one[1].message)}", err=True)
            unreadable.append(one[0])
    return questions, unreadable


def _row(one: OpenQuestion) -> tuple[str, ...]:
    under_way = "-" if one.answer is None else f"by {one.answer.actor}, not taken in yet"
    return (one.workflow_id, one.step_id, one.name, time_text(one.since) or "-", one.text, under_way)


def _fields(one: OpenQuestion) -> dict[str, Any]:
    from holdfast.domain.time import timestamp_text

    answer = one.answer
    under_way = answer and {
        "granted": answer.data["granted"],
        "by": answer.actor,
        "at": timestamp_text(answer.requested_at),
        "request": answer.id,
    }
    fields: dict[str, Any] = as_json_tree(
        {
            "workflow_id": one.workflow_id,
            "step_id": one.step_id,
            "name": one.name,
            "question": one.text,
            "data": dict(one.data),
            "since": one.since or None,
            "answer": under_way,
        }
    )
    return fields
