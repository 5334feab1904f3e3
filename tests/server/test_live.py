"""What happens in a store is told while it happens, in the trail's own order, and nothing twice."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.error
import urllib.request
from contextlib import closing

import pytest

import holdfast
from holdfast.domain.errors import StoreNotFoundError
from holdfast.server.live import READS, Live, Place, read_events
from holdfast.server.problems import Refusal
from holdfast.server.settings import Settings
from tests.server.served import running

STORES = ("file", "sqlite")
NOW = Place(0, 0)


@pytest.fixture(params=STORES)
def url(request, tmp_path):
    url = f"{request.param}:{tmp_path}/store"
    with holdfast.open(url) as service:
        service.create_checkpoint("WF-1", {"a": 1})
    return url


class Listener:
    """Listens in the way that a browser does."""

    def __init__(self, served, query="", last=None, token=None):
        token = token or served.desk.doorkeeper.key
        headers = {
            "Authorization": f"Bearer {token}",
            **({"Last-Event-ID": str(last)} if last is not None else {}),
        }
        asked = urllib.request.Request(f"{served.url}/v1/events{query}", headers=headers)
        self._answer = urllib.request.urlopen(asked, timeout=30)
        self.last_id = -1
        self.media_type = self._answer.headers["content-type"]

    def messages(self):
        """Yield id and data of each event, until the server ends."""
        fields = {}
        for raw in self._answer:
            line = raw.decode().rstrip("\n")
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
                self.last_id = int(value) if name == "id" else self.last_id
            elif "data" in fields:
                yield int(fields["id"]), json.loads(fields["data"])
                fields = {}

    def next_of(self, type):
        return next(data for _, data in self.messages() if data["type"] == type)

    def close(self):
        self._answer.close()


def test_what_another_process_would_write_is_heard(url):
    with running(url) as served, closing(Listener(served, "?after=0")) as listener:
        assert listener.media_type.startswith("text/event-stream")
        first = listener.next_of("CHECKPOINT_CREATED")
        assert (first["workflow_id"], first["facts"]["cp_seq"]) == ("WF-1", 1)
        with holdfast.open(url) as service:
            service.create_checkpoint("WF-2", {"b": 2})
        assert listener.next_of("CHECKPOINT_CREATED")["workflow_id"] == "WF-2"


def test_one_workflow_alone_can_be_listened_to(url):
    with running(url) as served, closing(Listener(served, "?after=0&run=WF-2")) as listener:
        with holdfast.open(url) as service:
            service.create_checkpoint("WF-1", {"a": 2})
            service.create_checkpoint("WF-2", {"b": 2})
        assert listener.next_of("CHECKPOINT_CREATED")["workflow_id"] == "WF-2"


def test_who_was_cut_off_goes_on_after_the_last_that_was_heard(url):
    with holdfast.open(url) as service:
        for number in range(20):
            service.create_checkpoint("WF-1", {"n": number})
    with running(url) as served:
        with closing(Listener(served, "?after=0")) as listener:
            whole = [next_pair for next_pair, _ in zip(listener.messages(), range(20), strict=False)]
        heard = whole[:7]
        with closing(Listener(served, last=heard[-1][0])) as listener:
            rest = [pair for pair, _ in zip(listener.messages(), range(13), strict=False)]
    assert heard + rest == whole
    assert [index for index, _ in whole] == sorted({index for index, _ in whole})


def test_that_somebody_looked_is_told_only_when_asked(url):
    with holdfast.open(url) as service:
        service.restore_checkpoint("WF-1@1")
    with running(url) as served:
        with closing(Listener(served, "?after=0&reads=true")) as listener:
            assert listener.next_of("STATE_RESTORED")["workflow_id"] == "WF-1"
        with holdfast.open(url) as service:
            service.create_checkpoint("WF-9", {})
        with closing(Listener(served, "?after=0")) as listener:
            heard = []
            for _, data in listener.messages():
                heard.append(data["type"])
                if data["workflow_id"] == "WF-9":
                    break
    assert not READS.intersection(heard)


def test_streams_end_when_the_server_does(url):
    ended = threading.Event()
    with running(url) as served:
        listener = Listener(served)

        def listen():
            list(listener.messages())
            ended.set()

        threading.Thread(target=listen, daemon=True).start()
    assert ended.wait(30)


def test_a_stream_of_no_seconds_tells_all_that_happened_and_ends_with_where_to_go_on(url):
    with holdfast.open(url) as service:
        for number in range(700):
            service.create_checkpoint("WF-2", {"n": number}, wait=False)
    with running(url) as served:
        with closing(Listener(served, "?after=0&seconds=0")) as listener:
            heard = [data for _, data in listener.messages()]
            last = listener.last_id
        assert [data["index"] for data in heard] == list(range(last + 1))
        assert sum(data["type"] == "CHECKPOINT_CREATED" for data in heard) == 701
        served.desk.service.create_checkpoint("WF-3", {"n": 1})
        with closing(Listener(served, "?seconds=0&run=WF-3", last=last)) as listener:
            assert [data["workflow_id"] for _, data in listener.messages()] == ["WF-3"]
            # Also of what was not wanted: nobody hears it again.
            assert listener.last_id > last + 1
        with closing(Listener(served, "?seconds=0")) as listener:
            assert list(listener.messages()) == []


def test_no_stream_lasts_longer_than_the_server_allows(url):
    settings = Settings(rate=1e6, stream_seconds=0)
    with running(url, settings) as served, closing(Listener(served, "?after=0&seconds=600")) as listener:
        assert "CHECKPOINT_CREATED" in [data["type"] for _, data in listener.messages()]


def test_what_never_stops_happening_keeps_no_stream_open_beyond_its_time():
    """Every look finds more than the one before."""

    class Growing(Empty):
        size = 3

        def leaves(self, after=0):
            self.size += 1
            return iter([b"no entry"] * (self.size - after))

    live = Live(Growing(), streams_max=1)

    async def listen():
        place = Place(0, 3)
        told = live.listen("ann", place, lambda event: True, lambda: True, with_facts=True, seconds=0)
        return [piece async for piece in told]

    assert asyncio.run(listen())[-1].endswith(b": still here\n\n")


def test_one_listener_too_many_is_told_to_come_back(url):
    with (
        running(url, Settings(streams=1, rate=1_000)) as served,
        closing(Listener(served, "?after=0")) as one,
    ):
        one.next_of("CHECKPOINT_CREATED")
        with pytest.raises(urllib.error.HTTPError) as refused:
            Listener(served)
    assert refused.value.code == 503 and refused.value.headers["retry-after"]
    refused.value.close()


@pytest.mark.parametrize("last", ["x", "-1", "1" * 16])
def test_what_is_no_number_of_an_entry_is_refused(url, last):
    with running(url) as served, pytest.raises(urllib.error.HTTPError) as refused:
        Listener(served, last=last)
    assert refused.value.code == 400
    refused.value.close()


def test_a_damaged_entry_is_told_as_such_and_ends_nothing(url):
    class Damaged:
        def leaves(self, after):
            return iter([b"torn\n", b"{}"][after:])

    assert [event.type for event in read_events(Damaged(), 0, 5)] == ["DAMAGED", "DAMAGED"]


@pytest.mark.parametrize("url", ["file"], indirect=True)
def test_who_asks_for_what_has_not_happened_hears_what_happens_next(url):
    with running(url) as served, closing(Listener(served, f"?after={2**53}")) as far:
        with holdfast.open(url) as service:
            service.create_checkpoint("WF-2", {"b": 2})
        assert far.next_of("CHECKPOINT_CREATED")["workflow_id"] == "WF-2"
        with closing(Listener(served, "?after=0&run=WF-2")) as another:
            assert another.next_of("CHECKPOINT_CREATED")["workflow_id"] == "WF-2"


@pytest.mark.parametrize("url", ["file"], indirect=True)
def test_who_may_not_read_the_trail_hears_what_happened_and_not_who_did_it(url):
    with running(url) as served:
        _, text = served.desk.service.tokens.create("ann", ["viewer"])
        with closing(Listener(served, "?after=0", token=text)) as listener:
            told = listener.next_of("CHECKPOINT_CREATED")
        with pytest.raises(urllib.error.HTTPError) as refused:
            Listener(served, "?reads=true", token=text)
    assert (told["workflow_id"], told["actor"], told["facts"]) == ("WF-1", None, {})
    assert refused.value.code == 403
    refused.value.close()


@pytest.mark.parametrize("url", ["file"], indirect=True)
def test_a_stream_ends_with_the_token_it_began_with(url):
    with running(url) as served:
        token, text = served.desk.service.tokens.create("ann", ["viewer"])
        with closing(Listener(served, "?after=0", token=text)) as listener:
            listener.next_of("CHECKPOINT_CREATED")
            served.desk.service.tokens.revoke(token.id)
            assert "TOKEN_REVOKED" not in [data["type"] for _, data in listener.messages()]


def test_what_happens_after_somebody_may_no_longer_listen_is_not_told():
    """The right to listen ends while what comes next is being read."""
    is_over = threading.Event()

    class Ending(Empty):
        def leaves(self, after):
            is_over.set()
            return iter([b"no entry"])

    live = Live(Ending(), streams_max=1)

    async def listen():
        place = Place(0, 1)
        told = live.listen("ann", place, lambda event: True, lambda: not is_over.is_set(), with_facts=True)
        return [piece async for piece in told]

    assert len(asyncio.run(listen())) == 1


def test_of_listeners_that_come_at_once_no_more_are_heard_than_may_be():
    live = Live(Empty(), streams_max=1)

    async def listen():
        live.admit("ann")
        one, other = (live.listen("ann", NOW, bool, lambda: True, with_facts=True) for _ in range(2))
        first, others = await anext(one), [piece async for piece in other]
        await one.aclose()
        return first, others

    first, others = asyncio.run(listen())
    assert first.startswith(b"retry:") and others == []
    live.admit("ann")


def test_a_stream_of_a_log_that_cannot_be_read_ends_and_leaves_its_place():
    live = Live(Empty(), streams_max=1)

    def gone():
        raise StoreNotFoundError("it went away")

    async def listen():
        return [piece async for piece in live.listen("ann", NOW, bool, gone, with_facts=True)]

    assert len(asyncio.run(listen())) == 1
    live.admit("ann")


def test_one_alone_does_not_take_all_the_places():
    live = Live(Empty(), streams_max=8)

    async def listen():
        streams = [live.listen("ann", NOW, bool, lambda: True, with_facts=True) for _ in range(2)]
        for stream in streams:
            await anext(stream)
        with pytest.raises(Refusal):
            live.admit("ann")
        live.admit("bob")
        for stream in streams:
            await stream.aclose()

    asyncio.run(listen())
    live.admit("ann")


def test_when_the_log_can_no_longer_be_looked_at_streams_end_and_new_ones_may_begin():
    store = Leaving()
    live = Live(store, streams_max=4, look_seconds=0.001)

    async def listen():
        looking = asyncio.create_task(live.run())
        stream = live.listen("ann", live.place(None), bool, lambda: True, with_facts=True)
        first = await anext(stream)
        store.is_away = True
        async with asyncio.timeout(60):
            others = [piece async for piece in stream]
        store.is_away = False
        again = live.listen("ann", live.place(None), bool, lambda: True, with_facts=True)
        begun = await anext(again)
        await again.aclose()
        looking.cancel()
        return first, others, begun

    first, others, begun = asyncio.run(listen())
    assert (first, others) == (begun, [])


class Empty:
    """A log without entries."""

    def integrate(self):
        return 0

    def leaves(self, after):
        return iter(())


class Leaving(Empty):
    """A log whose store goes away."""

    is_away = False

    def integrate(self):
        if self.is_away:
            raise StoreNotFoundError("the folder is gone")
        return 0
