"""The write-ahead journal: append under a lock, sync outside it, settle, recycle.

Several processes append to one ring. Each holds a shared lock on `users` while the store is open; who
can take it alone knows that nobody else lives, and recovers what a crash left.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import takewhile

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.frame import (
    EMPTY_DIGEST,
    Frame,
    Operation,
    encode_frame,
    frame_bytes,
)
from holdfast.adapters.filesystem.named import Named
from holdfast.adapters.filesystem.page import Page, open_page
from holdfast.adapters.filesystem.ring import Ring, Superblock
from holdfast.adapters.filesystem.ring_files import (
    FOLDER,
    LOCK_PATH,
    counting_ring,
    discard_before,
    discard_others,
    find_damage,
    open_lock,
    ring_path,
    write_named,
)
from holdfast.domain.value import value

PAGE_PATH = f"{FOLDER}/shared"
#: Tokens outlive a ring file, so they are counted in a generation of their own.
_TOKEN_GENERATION = 0


class JournalPoisoned(Exception):
    """A sync of this ring, or of the name of its successor, failed: it is not trusted with anything more."""


@value
class Appended:
    """Where a frame was written, and to which ring: by the time it is synced there may be a newer one."""

    lsn: int
    end: int
    previous: bytes
    digest: bytes
    ring: Ring


class Journal:
    """One process's view of the journal."""

    def __init__(self, disk: Disk, capacity: int) -> None:
        self._disk = disk
        self._capacity = capacity
        self._lock, self.damage = open_lock(disk)
        #: What the files of the store lie beside.
        self.place = Named(disk, LOCK_PATH)
        self._users = disk.open(f"{FOLDER}/users", write=True, create=True)
        self.page = open_page(disk, PAGE_PATH)
        self.ring: Ring
        # Old ones stay open: another thread may be syncing one, and a number that is closed under it
        # could by then name another file.
        self._rings: list[Ring] = []
        # An error of a sync is told once per descriptor: the next sync must not start before it is known.
        self._syncing = threading.Lock()
        self._closed = False
        self.generation = self.end = self.token = 0
        self.chain = EMPTY_DIGEST

    @property
    def settled(self) -> int:
        """The settled point as far as any process has told."""
        return max(self.page.mark(Page.SETTLED, self.generation), self.ring.superblock.settled)

    @property
    def durable(self) -> int:
        return max(self.page.durable(self.generation), self.ring.superblock.settled)

    @property
    def is_poisoned(self) -> bool:
        """Whether a sync of the ring failed, for anybody."""
        return bool(self.page.mark(Page.POISONED, self.generation))

    # -- opening and closing -----------------------------------------------------------------

    def open(self, redo: Callable[[list[Frame]], tuple[int, bytes] | None]) -> None:
        """Join the processes that write this store, or recover it if there are none.

        Args:
            redo: Carries the frames since the settled point out on the files, durably. Answers position and
                chain value before the last of them that takes something away for ever.
        """
        try:
            self._disk.lock(self._lock)
            if self._disk.lock(self._users, wait=False):
                self._recover(redo)
            self._disk.lock(self._users, shared=True)
            self._join()
        except BaseException:
            # A lock that outlives a failed opening would keep everybody out, ourselves included.
            self.release()
            raise
        self._disk.unlock(self._lock)

    def _recover(self, redo: Callable[[list[Frame]], tuple[int, bytes] | None]) -> None:
        ring, damage = counting_ring(self._disk, self._capacity)
        self.damage = self.damage or damage
        # Whoever made the store or the ring may have died before the names were durable.
        for folder in ("", FOLDER):
            self._disk.sync_folder(folder)
        try:
            block = ring.superblock
            durable = self.page.durable(block.generation)
            frames = list(ring.since_settled())
            end, chain = _end_of(frames, block)
            self.damage = self.damage or find_damage(ring, end, durable)
            self._make_durable(ring, frames)
            final = redo(frames)
            self.page.clear()
            generation = self._restart(ring, end, chain, final)
            self.page.publish(generation, end, chain)
        finally:
            self._disk.close(ring.handle)

    def _make_durable(self, ring: Ring, frames: list[Frame]) -> None:
        """A killed writer's last frame may be in memory only; files must never be ahead of the journal."""
        if self.page.mark(Page.POISONED, ring.superblock.generation):
            # A sync failed before: these pages may count as clean although the medium lacks them.
            for frame in frames:
                ring.write_frame(frame)
        if frames:
            self._sync_or_poison(ring)

    def _restart(self, ring: Ring, end: int, chain: bytes, final: tuple[int, bytes] | None) -> int:
        """Settle everything redone; after damage, or with another size, in a new ring file."""
        block = ring.superblock
        if self.damage is None and block.capacity == self._capacity:
            if final is not None:
                # Settled last: a crash before the ring is wiped must end here again.
                ring.settle(*final)
                ring.wipe(final[0], end)
            if end != block.settled:
                ring.settle(end, chain)
            ring.fill()
            return block.generation
        fresh = Superblock(block.generation + 1, 1, self._capacity, end, chain)
        self._disk.close(Ring.create(self._disk, ring_path(fresh.generation), fresh).handle)
        self._disk.sync_folder(FOLDER)
        self._discard(ring)
        return fresh.generation

    def _discard(self, ring: Ring) -> None:
        self._disk.unlink(ring.path)
        self._disk.sync_folder(FOLDER)

    def _join(self) -> None:
        tail = self.page.tail()
        if tail is None:
            raise JournalPoisoned("the shared page is damaged while other processes use the store")
        self._open_ring(tail.generation)
        self.token = self.page.mark(Page.TOKENS, _TOKEN_GENERATION) + 1
        self.page.raise_mark(Page.TOKENS, _TOKEN_GENERATION, self.token)

    def _open_ring(self, generation: int) -> None:
        # By its name: in another store's folder it would be another one's.
        self.place.check()
        ring = Ring.open(self._disk, ring_path(generation), write=True)
        if ring is None:
            raise JournalPoisoned("the journal's superblocks are damaged")
        discard_before(self._disk, generation)
        self._ring_place = Named(self._disk, ring.path)
        self._rings.append(ring)
        self.ring, self.generation = ring, generation
        self.end, self.chain = ring.superblock.settled, ring.superblock.chain

    def close(self, *, shrink: bool) -> None:
        """Leave; the last one out gives the ring's space back if everything is settled."""
        self._disk.lock(self._lock)
        try:
            alone = self._disk.lock(self._users, wait=False)
            tail = self.page.tail()
            if alone and shrink and tail is not None and tail.end == self.ring.superblock.settled:
                # Only space is at stake.
                with suppress(OSError):
                    self.ring.shrink()
        finally:
            self._disk.unlock(self._lock)
        with self._syncing:
            self._closed = True
            self.release()

    def release(self) -> None:
        """Close every descriptor without unlocking: after a fork the locks are our parent's."""
        self.page.close()
        for ring in self._rings:
            self._disk.close(ring.handle)
        self._disk.close(self._users)
        self._disk.close(self._lock)

    # -- appending ---------------------------------------------------------------------------

    def lock(self) -> None:
        """Take the append lock; a poisoned ring is replaced before anything else."""
        self._disk.lock(self._lock)
        try:
            tail = self.page.tail()
            if tail is not None and self.page.mark(Page.POISONED, tail.generation):
                self._replace_ring(tail.generation)
        except BaseException:
            self.unlock()
            raise

    def unlock(self) -> None:
        """Let others append."""
        self._disk.unlock(self._lock)

    def _replace_ring(self, generation: int) -> None:
        """Carry what is known durable into a new file: the failed one is never trusted again."""
        self.place.check()
        ring = Ring.open(self._disk, ring_path(generation), write=True)
        if ring is None:
            raise JournalPoisoned("the journal's superblocks are damaged")
        try:
            self._carry_over(ring, ring.capacity)
        finally:
            self._disk.close(ring.handle)

    def _carry_over(self, ring: Ring, capacity: int) -> None:
        block, page = ring.superblock, self.page
        generation, successor = block.generation, block.generation + 1
        durable = max(page.durable(generation), block.settled)
        frames = [f for f in ring.since_settled() if f.end <= durable]
        fresh = Superblock(successor, 1, capacity, block.settled, block.chain)
        self._disk.close(Ring.create(self._disk, ring_path(successor), fresh, frames).handle)
        # As long as nothing was appended to it the old one counts: this may fail, or be the last thing done.
        self._disk.sync_folder(FOLDER)
        end, chain = _end_of(frames, block)
        page.raise_durable(successor, end, self.token)
        for mark in (Page.APPLIED, Page.REDO):
            page.raise_mark(mark, successor, page.mark(mark, generation))
        page.publish(successor, end, chain)
        self._discard(ring)

    def grow(self, payload_bytes: int) -> None:
        """Go on in a ring that takes such a frame, unless somebody has begun one. Needs the append lock."""
        if self.takes(payload_bytes):
            return
        self.place.check()
        self.sync_published()
        capacity = self.ring.capacity
        while capacity < 2 * frame_bytes(payload_bytes):
            capacity *= 2
        # Whoever appended to the ring that is left syncs that one, and has nothing to tell of the next.
        with self._syncing:
            self.ring.reread_superblock()
            self._carry_over(self.ring, capacity)

    def catch_up(self) -> tuple[bool, list[Frame]]:
        """Frames others appended since we looked, and whether we must forget what we knew.

        Right only under the append lock; without it, a moment's view.
        """
        tail = self.page.tail()
        if tail is None or (tail.generation == self.generation and tail.end == self.end):
            return False, []
        forget = tail.generation != self.generation
        if forget:
            self._open_ring(tail.generation)
        elif self.settled > self.end:
            # We slept while the ring was recycled: what we missed is in the files.
            forget = True
            self.ring.reread_superblock()
            self.rewind()
        # What a failed sync left behind is dropped at the next append: nobody should see it before.
        is_poisoned = self.page.mark(Page.POISONED, tail.generation)
        limit = min(tail.end, self.durable) if is_poisoned else tail.end
        frames = list(takewhile(lambda frame: frame.end <= limit, self.ring.chained(self.end, self.chain)))
        if frames:
            self.end, self.chain = frames[-1].end, frames[-1].digest
        return forget, frames

    def rewind(self) -> None:
        """Read everything since the settled point again at the next look."""
        self.end, self.chain = self.ring.superblock.settled, self.ring.superblock.chain

    def takes(self, payload_bytes: int) -> bool:
        """Whether so much fits into this ring, once everything in it is settled."""
        return frame_bytes(payload_bytes) <= self.ring.capacity

    def room_for(self, payload_bytes: int) -> bool:
        """Whether so much fits without overwriting what is not settled."""
        block = self.ring.superblock
        needed = frame_bytes(payload_bytes) + self.end - block.capacity
        # What others settled is asked for only where what we settled does not do.
        return needed <= block.settled or needed <= self.settled

    def append(self, payload: bytes) -> Appended:
        """Write one frame at the end and tell the others. Not yet durable. Needs the append lock."""
        tail = self.page.tail()
        if tail is None or tail.end != self.end:
            raise JournalPoisoned("frames of others cannot be read: appending now would overwrite them")
        lsn, chain = self.end, self.chain
        data, digest = encode_frame(lsn, self.durable, self.token, chain, payload)
        # Whoever puts another ring there has the lock, too.
        write_named(self.ring, self._ring_place, data, lsn)
        self.end, self.chain = lsn + len(data), digest
        self.page.publish(self.generation, self.end, digest)
        return Appended(lsn, self.end, chain, digest, self.ring)

    def sync(self, frame: Appended) -> None:
        """Make a frame, and all before it, durable; raises if that failed for anyone."""
        self._sync_ring(frame.ring, frame.end)

    def sync_published(self) -> None:
        """Make durable what writers appended and died before syncing: it would hold the ring for ever."""
        ring, tail = self.ring, self.page.tail()
        if tail and tail.generation == ring.superblock.generation and tail.end > self.durable:
            self._sync_ring(ring, tail.end)

    def _sync_ring(self, ring: Ring, end: int) -> None:
        generation = ring.superblock.generation
        with self._syncing:
            if self._closed:
                raise JournalPoisoned("the store was closed before the commit was synced")
            self._sync_or_poison(ring)
            self._check_sound(generation)
            self.page.raise_durable(generation, end, self.token)
            # Whoever found it poisoned in between carried over what was known durable then.
            self._check_sound(generation)

    def _check_sound(self, generation: int) -> None:
        if self.page.mark(Page.POISONED, generation):
            raise JournalPoisoned("another writer's sync of the same journal failed")

    def _sync_or_poison(self, ring: Ring) -> None:
        try:
            ring.sync()
        except OSError:
            self.page.raise_mark(Page.POISONED, ring.superblock.generation, 1)
            raise

    # -- settling ----------------------------------------------------------------------------

    @property
    def settled_position(self) -> tuple[int, bytes]:
        """The settled point as the ring tells it, and the chain value there."""
        return self.ring.superblock.settled, self.ring.superblock.chain

    def reread_settled(self) -> None:
        """Take up what another process settled. For the one applier."""
        if self.ring.reread_superblock():
            # The applier before us may have died between writing and syncing it.
            self.ring.sync()

    def frames_since_settled(self) -> list[Frame]:
        """Durable frames that the files do not yet durably hold. For the one applier."""
        durable = self.durable
        return [frame for frame in self.ring.since_settled() if frame.end <= durable]

    def unsettled(self) -> Iterator[Operation]:
        """What a recovery would redo, applied or not. Needs the append lock."""
        self.ring.reread_superblock()
        for frame in self.ring.since_settled():
            yield from frame.operations()

    def wipe(self) -> None:
        """Overwrite what is settled: of what was erased, nothing may be read here. Needs the append lock."""
        discard_others(self._disk, self.generation)
        with self._syncing:
            try:
                self.ring.wipe(self.settled, self.end)
            except OSError:
                self.page.raise_mark(Page.POISONED, self.generation, 1)
                raise

    def settle(self, settled: int, chain: bytes) -> None:
        """Recycle up to a position whose files are durable. For the one applier."""
        with self._syncing:
            ring, generation = self.ring, self.ring.superblock.generation
            try:
                ring.settle(settled, chain)
            except OSError:
                # Its sync was everybody's: frames of others may be lost with it.
                self.page.raise_mark(Page.POISONED, generation, 1)
                raise
        self.page.raise_mark(Page.SETTLED, generation, settled)


def _end_of(frames: list[Frame], block: Superblock) -> tuple[int, bytes]:
    return (frames[-1].end, frames[-1].digest) if frames else (block.settled, block.chain)
