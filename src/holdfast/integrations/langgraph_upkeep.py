"""What is done to threads as a whole: pruning, erasing, copying, and the history of delta channels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from holdfast.application.commands import AppendEvent
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import CheckpointNotFoundError
from holdfast.integrations.langgraph_given import COUNTERS
from holdfast.integrations.langgraph_names import told_event
from holdfast.integrations.langgraph_recorder import Place, Recorder
from holdfast.integrations.langgraph_states import checkpoint_in, write_in
from holdfast.integrations.langgraph_thread import SEED_EVENT, Put, Thread, Write
from holdfast.integrations.langgraph_values import Values, owned


class Upkeep:
    """Carries out what is asked of whole threads."""

    def __init__(self, service: CheckpointService, recorder: Recorder, values: Values) -> None:
        self._service = service
        self._recorder = recorder
        self._values = values

    def erase(self, thread_id: str) -> None:
        """Erase a thread, if there is one."""
        with self._recorder.thread(thread_id) as thread:
            thread.refresh()
            if thread.says_anything():
                reason, erase = "LangGraph deleted the thread", self._service.erasure.workflow
                self._recorder.insist(lambda: erase(thread.workflow_id, reason=reason))
            thread.lost()

    def keep_newest(self, thread_id: str) -> None:
        """Remove all but the newest checkpoint of each namespace."""
        with self._recorder.thread(thread_id) as thread:
            thread.refresh()
            puts = thread.all_puts()
            newest = {put.ns: put for put in puts}
            kept = {put.sequence for put in newest.values()}
            self._remove(thread, puts, kept)

    def remove_runs(self, thread_ids: Iterable[str], run_ids: set[str]) -> None:
        """Remove the checkpoints of runs."""
        for thread_id in thread_ids:
            with self._recorder.thread(thread_id) as thread:
                thread.refresh()
                puts = thread.all_puts()
                kept = {put.sequence for put in puts if put.metadata.get("run_id") not in run_ids}
                if puts and not kept:
                    self.erase(thread_id)
                else:
                    self._remove(thread, puts, kept)

    def copy(self, source: str, target: str) -> None:
        """Put everything of a thread into another, in the order in which it was put."""
        with self._recorder.thread(source) as thread:
            thread.refresh()
            puts = thread.all_puts()
        for put in puts:
            stored = self._recorder.recording.state(thread.workflow_id, put.sequence)
            checkpoint = checkpoint_in(stored, put, self._values)
            versions = checkpoint["channel_versions"]
            # Of whom the one is, the other is as well.
            place = Place(target, put.ns, put.parent, f"{thread.workflow_id}@{put.sequence}")
            self._recorder.put(place, checkpoint, put.metadata, versions, self._values, is_exclusive=False)
            self._copy_writes(put, Place(target, put.ns, put.id))
            if put.seed is not None:
                with self._recorder.thread(target) as copied:
                    self._tell_seed(copied, put, put.seed)

    def history(self, thread: Thread, put: Put, channels: Sequence[str]) -> dict[str, Any]:
        """Answer, by channel, the writes since the nearest checkpoint that has a value, and that value.

        Raises:
            CheckpointNotFoundError: a checkpoint on the way is gone.
        """
        found: dict[str, Any] = {channel: {"writes": []} for channel in channels}
        open_channels = set(channels)
        at: Put = put
        while open_channels and at.parent:
            if at.seed is not None:
                self._take_seed(found, open_channels, at.seed)
                break
            at = self._parent(thread, at)
            self._take_writes(found, open_channels, thread, at)
            if has_value := open_channels & set(at.names):
                stored = thread.recording.state(thread.workflow_id, at.sequence)
                values = checkpoint_in(stored, at, self._values)["channel_values"]
                found = {
                    name: {**told, "seed": values[name]} if name in has_value else told
                    for name, told in found.items()
                }
                open_channels -= has_value
        return found

    def _parent(self, thread: Thread, put: Put) -> Put:
        parent = thread.any_put(put.ns, put.parent or "")
        if parent is None or (parent.is_gone and parent.seed is None):
            raise CheckpointNotFoundError(
                f"the checkpoint {put.parent} that delta channels are rebuilt from is gone",
                place=f"{thread.workflow_id}@{put.sequence}",
                hint="Prune threads of LangGraph by the saver's own `prune`, which keeps what they need.",
            )
        return parent

    def _take_writes(self, found: dict[str, Any], channels: set[str], thread: Thread, put: Put) -> None:
        """Add the writes on a checkpoint before those that were found after it."""
        stored = partial(thread.recording.state, thread.workflow_id, put.sequence)
        for channel in channels:
            writes = [write for write in put.ordered() if write.channel == channel]
            found[channel]["writes"][:0] = [
                (write.task, channel, write_in(stored, put, write, self._values)) for write in writes
            ]

    def _take_seed(self, found: dict[str, Any], channels: set[str], seed: dict[str, Any]) -> None:
        for channel in channels & seed.keys():
            told = seed[channel]
            found[channel]["writes"][:0] = [
                (task, channel, self._values.decode(owned(value), kind))
                for task, value, kind in told["writes"]
            ]
            if "seed" in told:
                found[channel]["seed"] = self._values.decode(*owned(told["seed"]))

    def _copy_writes(self, put: Put, place: Place) -> None:
        tasks: dict[tuple[str, str], list[Write]] = {}
        for write in put.ordered():
            tasks.setdefault((write.task, write.path), []).append(write)
        for (task, path), writes in tasks.items():
            told = [[write.index, write.channel, write.value, write.kind] for write in writes]
            self._recorder.tell_writes(place, task, path, told)

    def _remove(self, thread: Thread, puts: Sequence[Put], kept: set[int]) -> None:
        """Remove checkpoints, after what others need of them was recorded with those."""
        if len(kept) == len(puts):
            return
        gone = {(put.ns, put.id) for put in puts if put.sequence not in kept}
        for put in puts:
            if put.sequence in kept and put.seed is None and (put.ns, put.parent) in gone:
                self._seed(thread, put)
        last, keep_only = max(put.sequence for put in puts), thread.recording.keep_only
        self._recorder.insist(lambda: keep_only(thread.workflow_id, kept, through=last))
        thread.refresh()

    def _seed(self, thread: Thread, put: Put) -> None:
        channels = list(put.metadata.get(COUNTERS) or ())
        if not channels:
            return
        history = {
            channel: {
                "writes": [[task, *self._values.encode(value, channel)] for task, _, value in told["writes"]],
                **({"seed": list(self._values.encode(told["seed"], channel))} if "seed" in told else {}),
            }
            for channel, told in self.history(thread, put, channels).items()
        }
        self._tell_seed(thread, put, history)

    def _tell_seed(self, thread: Thread, put: Put, history: dict[str, Any]) -> None:
        told = {"id": put.id, "history": history, **({"ns": put.ns} if put.ns else {})}
        recording = thread.recording
        event = AppendEvent(thread.workflow_id, SEED_EVENT, told_event(told, recording.hides))
        self._recorder.insist(lambda: recording.wait(recording.event(event)))
        thread.refresh()
