"""The framework's own runner over the storage: runs, branches, questions to people, workflows in others."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_framework import InMemoryCheckpointStorage, WorkflowCheckpoint, WorkflowConvergenceException

import holdfast
from holdfast.integrations.agent_framework import HoldfastCheckpointStorage, checkpoint_types
from tests.integrations.agent_framework_workflows import Draft, asking, chained, functional, nested, talking
from tests.integrations.forks import Forks, forks
from tests.integrations.pages import sample

PAGE = sample("agent_framework")
STEPS = ["step-0", "step-1", "step-2", "step-3"]
#: Of the sample, after its beginning.
SUPERSTEPS = 3


@pytest.fixture(params=["file", "sqlite"])
def url(request, tmp_path):
    return f"{request.param}:{tmp_path / 'store'}"


def opened(url):
    return HoldfastCheckpointStorage(url, registry=checkpoint_types(Draft))


def test_a_run_is_continued_from_each_of_its_checkpoints_and_repeats_nothing_before_it(url):
    async def main():
        async with opened(url) as storage:
            done: list[str] = []
            whole = await chained(storage, done).run(Draft([]))
            assert storage.failure is None and done == STEPS
            ids = await storage.list_checkpoint_ids(workflow_name="chain")
        for number, checkpoint_id in enumerate(ids):
            done = []
            async with opened(url) as storage:
                rest = await chained(storage, done).run(checkpoint_id=checkpoint_id)
            assert done == STEPS[number:]
            assert rest.get_outputs() == whole.get_outputs()[number:]

    asyncio.run(main())


def test_what_is_stored_is_what_the_frameworks_own_storage_would_hold(url):
    async def main():
        own = InMemoryCheckpointStorage()
        await chained(own, []).run(Draft(["x"]))
        async with opened(url) as storage:
            for checkpoint in await own.list_checkpoints(workflow_name="chain"):
                await storage.save(checkpoint)
            wanted = await own.list_checkpoints(workflow_name="chain")
            assert await storage.list_checkpoints(workflow_name="chain") == wanted
            assert await storage.get_latest(workflow_name="chain") == wanted[-1]

    asyncio.run(main())


def lineage(checkpoints: list[WorkflowCheckpoint], last: str) -> list[str]:
    by_id = {checkpoint.checkpoint_id: checkpoint for checkpoint in checkpoints}
    found: list[str] = []
    step: str | None = last
    while step is not None:
        found.insert(0, step)
        step = by_id[step].previous_checkpoint_id
    return found


def test_a_run_that_was_continued_after_a_restart_stays_one_run_with_one_lineage(url):
    async def main():
        async with opened(url) as storage:
            first = await storage.save(WorkflowCheckpoint("chain", "h"))
            second = await storage.save(WorkflowCheckpoint("chain", "h", previous_checkpoint_id=first))
        async with opened(url) as storage:
            third = await storage.save(WorkflowCheckpoint("chain", "h", previous_checkpoint_id=second))
            runs = await storage.list_runs(workflow_name="chain")
            assert list(runs.values()) == [[first, second, third]]
            stored = await storage.list_checkpoints(workflow_name="chain")
            assert lineage(stored, third) == [first, second, third]

    asyncio.run(main())


def test_what_goes_on_from_an_older_checkpoint_is_a_branch_that_knows_where_it_began(url):
    async def main():
        async with opened(url) as storage:
            await chained(storage, []).run(Draft([]))
            [(run, ids)] = (await storage.list_runs(workflow_name="chain")).items()
            await chained(storage, []).run(checkpoint_id=ids[1])
            runs = await storage.list_runs(workflow_name="chain")
            assert runs.pop(run) == ids
            [(branch, after)] = runs.items()
            stored = await storage.list_checkpoints(workflow_name="chain")
            assert lineage(stored, after[-1]) == [*ids[:2], *after]
            assert await storage.get_latest(workflow_name="chain") == await storage.load(after[-1])
        with holdfast.open(url) as service:
            first, begun = service.get_by_id(f"{branch}@1"), service.get_by_id(f"{run}@2")
            assert first is not None and begun is not None
            assert first.parent_checkpoint_id == begun.id.uuid

    asyncio.run(main())


def test_two_runs_of_one_name_at_once_never_mix(url):
    async def main():
        async with opened(url) as storage, opened(url) as other:
            await asyncio.gather(chained(storage, []).run(Draft(["a"])), chained(other, []).run(Draft(["b"])))
            runs = await storage.list_runs(workflow_name="chain")
            assert len(runs) == 2
            for ids in runs.values():
                loaded = [await storage.load(one) for one in ids]
                assert [one.previous_checkpoint_id for one in loaded] == [None, *ids[:-1]]
                assert len({one.state["words"][0] for one in loaded[1:]}) == 1

    asyncio.run(main())


def test_eight_at_once_that_go_on_from_one_checkpoint_are_all_kept(url):
    async def main():
        async with opened(url) as storage, opened(url) as other:
            root = await storage.save(WorkflowCheckpoint("race", "h"))
            after = [
                WorkflowCheckpoint("race", "h", previous_checkpoint_id=root, state={"n": number})
                for number in range(8)
            ]
            await asyncio.gather(*((storage, other)[n % 2].save(one) for n, one in enumerate(after)))
            runs = await storage.list_runs(workflow_name="race")
            assert len(runs) == 8 and max(len(ids) for ids in runs.values()) == 2
            for one in after:
                assert await other.load(one.checkpoint_id) == one

    asyncio.run(main())


def test_eight_threads_with_storages_of_their_own_run_side_by_side(url):
    problems: list[BaseException] = []

    async def one(number):
        async with opened(url) as storage:
            await chained(storage, [], name=f"chain-{number % 4}").run(Draft([str(number)]))
            if storage.failure:
                raise storage.failure

    def work(number):
        try:
            asyncio.run(one(number))
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []

    async def check():
        async with opened(url) as storage:
            for number in range(4):
                runs = await storage.list_runs(workflow_name=f"chain-{number}")
                assert sorted(map(len, runs.values())) == [6, 6]

    asyncio.run(check())


@pytest.mark.parametrize("build", [asking, nested])
def test_a_question_to_a_person_outlives_the_process(url, build):
    async def main():
        async with opened(url) as storage:
            result = await build(storage).run(Draft(["may I?"]))
            [asked] = result.get_request_info_events()
            assert storage.failure is None
        async with opened(url) as storage:
            name = "asking" if build is asking else "outer"
            last = await storage.get_latest(workflow_name=name)
            assert last is not None and list(last.pending_request_info_events) == [asked.request_id]
            result = await build(storage).run(
                checkpoint_id=last.checkpoint_id, responses={asked.request_id: "yes"}
            )
            assert storage.failure is None
            return result.get_outputs()

    assert asyncio.run(main()) == [Draft(["may I?", "yes"])]


async def talked(storage, turns, checkpoint_id=None):
    """Let agents talk for so many turns; answer what was said."""
    workflow = talking(storage, turns)
    with pytest.raises(WorkflowConvergenceException):
        await (workflow.run(checkpoint_id=checkpoint_id) if checkpoint_id else workflow.run("hello"))
    last = await storage.get_latest(workflow_name="talk")
    [message] = last.messages["other"]
    return [said.text for said in message.data.full_conversation], last.checkpoint_id


def test_agents_that_talk_are_continued_with_their_whole_conversation(url):
    async def main():
        wanted, _ = await talked(InMemoryCheckpointStorage(), 6)
        async with opened(url) as storage:
            begun, last = await talked(storage, 4)
            assert storage.failure is None and begun == wanted[:5]
        async with opened(url) as storage:
            whole, _ = await talked(storage, 6, last)
            assert storage.failure is None and whole == wanted and len(whole) == 7

    asyncio.run(main())


@pytest.mark.filterwarnings("ignore:.*FUNCTIONAL_WORKFLOWS")
def test_a_workflow_that_is_a_function_goes_on_with_the_results_of_its_steps(url):
    async def main():
        done: list[str] = []
        async with opened(url) as storage:
            result = await functional(storage, done).run("x")
            assert result.get_outputs() == ["x, drafted, judged"] and done == ["draft", "judge"]
            ids = await storage.list_checkpoint_ids(workflow_name="functional")
        for number, checkpoint_id in enumerate(ids):
            done.clear()
            async with opened(url) as storage:
                result = await functional(storage, done).run(checkpoint_id=checkpoint_id)
            assert result.get_outputs() == ["x, drafted, judged"]
            assert done == ["draft", "judge"][number + 1 :]

    asyncio.run(main())


def test_a_save_that_the_framework_only_logs_can_be_asked_for(caplog):
    async def main():
        async with HoldfastCheckpointStorage("memory:") as storage:
            with caplog.at_level(logging.WARNING):
                await chained(storage, []).run(Draft([]))
            return storage.failure

    failure = asyncio.run(main())
    assert isinstance(failure, holdfast.UnsupportedTypeError) and "Draft" in str(failure)


@pytest.fixture(scope="module")
def runs() -> Iterator[Forks]:
    with forks(PAGE) as started:
        yield started


def test_the_sample_killed_after_any_commit_goes_on_and_repeats_no_call_of_the_model(
    runs: Forks, tmp_path: Path, campaign: bool
) -> None:
    assert runs.cold.lines[0] == "begins" and runs.cold.lines[-1] == "2 calls of the model"
    kills = list(runs.kills(PAGE, tmp_path, every=campaign))
    for kill in kills:
        superstep = min(kill.after - 1, SUPERSTEPS)
        assert kill.second.lines == [f"goes on after superstep {superstep}", *runs.cold.lines[1:]]
    assert kills[-1].after > SUPERSTEPS


def test_the_sample_with_a_store_in_memory_begins_again(runs: Forks, tmp_path: Path) -> None:
    code = PAGE.replace("file:.holdfast", "memory:")
    for calls in (2, 4):
        lines = runs.run(code, tmp_path).lines
        assert (lines[0], lines[-1]) == ("begins", f"{calls} calls of the model")
