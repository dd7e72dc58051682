"""Scripted behaviour of LocalPubSub: errors, silence, waiting, wrong answers."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from beam_hedge.testing import CUT, NEVER, OK, LocalPubSub, Reply
from tests.server.conftest import TOPIC, ids, request

if TYPE_CHECKING:
    from collections.abc import Callable

    from beam_hedge.testing import RequestRecord
    from tests.server.conftest import RawClient

    Serve = Callable[..., tuple[LocalPubSub, RawClient]]

UNAVAILABLE = Reply(status=grpc.StatusCode.UNAVAILABLE, details="try again")


def stored(server: LocalPubSub) -> list[bytes]:
    """Returns the payloads that the server holds."""
    return [message.data for message in server.messages(TOPIC)]


def test_replies_by_call_number(serve: Serve) -> None:
    """Users can fail chosen calls, counted from 1, and all others succeed."""
    server, client = serve(script={2: UNAVAILABLE})
    ids(client.publish(b"first"))
    second = client.publish(b"second")
    assert (second.code(), second.details()) == (grpc.StatusCode.UNAVAILABLE, "try again")
    ids(client.publish(b"third"))
    assert stored(server) == [b"first", b"third"]


def test_the_script_can_change_while_the_server_runs(serve: Serve) -> None:
    """Users can begin and end an outage in the middle of a test."""
    server, client = serve()
    ids(client.publish(b"before"))
    server.script = UNAVAILABLE
    assert client.publish(b"lost").code() == grpc.StatusCode.UNAVAILABLE
    replies: dict[int, Reply] = {}
    server.script = replies
    ids(client.publish(b"after"))
    replies[4] = UNAVAILABLE
    assert client.publish(b"lost").code() == grpc.StatusCode.UNAVAILABLE
    server.script = None
    assert server.script is None
    ids(client.publish(b"end"))
    assert stored(server) == [b"before", b"after", b"end"]


def test_a_function_decides_by_the_whole_call(serve: Serve) -> None:
    """Users can refuse requests by what is in them, and by their headers."""

    def script(call: RequestRecord) -> Reply | None:
        if any(message.data == b"poison" for message in call.messages):
            return Reply(status=grpc.StatusCode.INVALID_ARGUMENT, details=f"call {call.number}")
        return UNAVAILABLE if call.metadata.get("x-test") == "fail" else None

    server, client = serve(script=script, record=0)
    ids(client.publish(b"a"))
    assert client.publish(b"b", b"poison").details() == "call 2"
    assert client.publish(b"c", metadata=[("x-test", "fail")]).code() == grpc.StatusCode.UNAVAILABLE
    assert stored(server) == [b"a"]


@pytest.mark.parametrize("store", ["arrival", "answer"])
def test_a_call_that_is_never_answered_ends_with_the_client(serve: Serve, store: str) -> None:
    """Users see that a cancelled request stays stored if it was stored at arrival, and only then."""
    server, client = serve(script={1: NEVER}, store=store)
    call = client.publish(b"x")
    server.wait_for(lambda ledger: ledger.open == 1)
    call.cancel()
    ledger = server.wait_for(lambda ledger: ledger.open == 0)
    assert (ledger.cancelled, ledger.answered) == (1, 0)
    (record,) = server.requests
    assert record.cancelled
    assert record.status is None
    assert stored(server) == ([b"x"] if store == "arrival" else [])


@pytest.mark.parametrize("store", ["arrival", "answer"])
def test_messages_are_stored_at_arrival_or_at_answer(serve: Serve, store: str) -> None:
    """Users choose whether the copies of a slow request count when they are sent or when they are answered."""
    release = threading.Event()
    server, client = serve(script={1: Reply(until=release)}, store=store)
    call = client.publish(b"slow")
    server.wait_for(lambda ledger: ledger.open == 1)
    # The next call is answered after the first one is known to wait.
    ids(client.publish(b"quick"))
    release.set()
    given = ids(call)
    slow_first = store == "arrival"
    assert stored(server) == ([b"slow", b"quick"] if slow_first else [b"quick", b"slow"])
    assert [message.message_id for message in server.messages(TOPIC) if message.data == b"slow"] == given


@pytest.mark.parametrize("store", ["arrival", "answer"])
@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=grpc.StatusCode.DEADLINE_EXCEEDED, stored=True),
        Reply(status=grpc.StatusCode.DEADLINE_EXCEEDED),
        Reply(stored=False),
    ],
)
def test_a_reply_may_say_whether_messages_are_stored(serve: Serve, reply: Reply, store: str) -> None:
    """Users can have an error for messages that arrived, and a success for messages that did not."""
    server, client = serve(script={1: reply}, store=store)
    call = client.publish(b"x")
    assert call.code() == reply.status
    assert stored(server) == ([b"x"] if reply.stored else [])


def test_an_event_releases_many_calls_at_once(serve: Serve) -> None:
    """Users can line up requests and let all of them go in one moment."""
    release = threading.Event()
    server, client = serve(script=Reply(until=release))
    calls = [client.publish(b"%d" % number) for number in range(20)]
    server.wait_for(lambda ledger: ledger.open == 20)
    assert not any(call.done() for call in calls)
    release.set()
    assert sorted(int(given) for call in calls for given in ids(call)) == list(range(1, 21))


def test_calls_can_wait_for_each_other(serve: Serve) -> None:
    """Users can have a request and its copy answered through one barrier."""
    both = threading.Event()

    def script(call: RequestRecord) -> Reply:
        if call.number == 2:
            both.set()
        return Reply(until=both)

    server, client = serve(script=script)
    first = client.publish(b"x")
    server.wait_for(lambda ledger: ledger.open == 1)
    assert not first.done()
    second = client.publish(b"x")
    assert (ids(first), ids(second)) == (["1"], ["2"])


def test_a_cancelled_call_ends_its_wait_for_an_event(serve: Serve) -> None:
    """Users leave no handler behind when an event is never set, and others may still wait for it."""
    release = threading.Event()
    server, client = serve(script=Reply(until=release))
    given_up, kept = client.publish(b"a"), client.publish(b"b")
    server.wait_for(lambda ledger: ledger.open == 2)
    given_up.cancel()
    server.wait_for(lambda ledger: ledger.cancelled == 1)
    release.set()
    assert len(ids(kept)) == 1


def test_an_event_that_is_set_already_holds_nothing_up(serve: Serve) -> None:
    """Users can let the first call through and hold none back after that."""
    release = threading.Event()
    release.set()
    _, client = serve(script=Reply(until=release))
    assert [ids(client.publish(b"x")) for _ in range(3)] == [["1"], ["2"], ["3"]]


@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_an_answer_can_have_the_wrong_number_of_ids(serve: Serve, count: int) -> None:
    """Users can test a broken answer; the messages are stored, and no id is given twice."""
    server, client = serve(script={1: Reply(ids=count)})
    first = ids(client.publish(b"a", b"b", b"c"))
    second = ids(client.publish(b"d"))
    assert len(first) == count
    assert len({*first, *second}) == count + 1
    assert stored(server) == [b"a", b"b", b"c", b"d"]


def test_a_scripted_delay_takes_the_place_of_the_profile(serve: Serve) -> None:
    """Users can make one call slow among quick ones, or quick among slow ones."""
    server, client = serve(profile="1:1000", script={1: Reply(delay=0), 2: Reply(delay=0.05)})
    ids(client.publish(b"a"))
    ids(client.publish(b"b"))
    record = server.requests[1]
    assert record.ended is not None
    assert record.ended - record.arrival >= 0.05


def test_waiting_calls_end_at_once_when_the_server_stops() -> None:
    """Users never wait for a scripted delay at the end of a test, and no handler thread is left."""
    replies = {1: NEVER, 2: Reply(delay=100_000), 3: Reply(until=threading.Event())}
    server = LocalPubSub(script=replies).start()
    server.create_topic(TOPIC)
    with grpc.insecure_channel(server.endpoint) as channel:
        publish: Any = channel.unary_unary("/google.pubsub.v1.Publisher/Publish")
        calls = [publish.future(request(b"x")) for _ in range(3)]
        server.wait_for(lambda ledger: ledger.open == 3)
        assert server.handler_threads >= 3
        server.stop()
        # Stopping a server looks like an ended connection or an ended call, by what comes first.
        ended = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
        assert {call.code() for call in calls} <= ended
    assert server.handler_threads == 0
    assert all(record.cancelled for record in server.requests)
    assert server.ledger().cancelled == 3


def test_a_broken_script_shows_in_the_answer(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    """Users see the mistake in their script at once: the status is one that no client retries."""

    def script(call: RequestRecord) -> Any:
        return "later" if call.number == 1 else call.messages[7]

    _, client = serve(script=script)
    for words in ("a script answers with a Reply, got 'later'", "IndexError"):
        call = client.publish(b"x")
        assert call.code() == grpc.StatusCode.FAILED_PRECONDITION
        assert words in call.details()
    assert "the script failed at publish call 2" in caplog.text


def test_a_scripted_error_comes_before_the_checks(serve: Serve) -> None:
    """Users get the error that they scripted, also for a topic that is not there."""
    denied = Reply(status=grpc.StatusCode.PERMISSION_DENIED)
    _, client = serve(script={1: denied})
    assert client.publish(b"x", topic=TOPIC + "-unknown").code() == grpc.StatusCode.PERMISSION_DENIED


@pytest.mark.parametrize("script", [CUT, {3: CUT}])
def test_cutting_connections_needs_the_relay(script: Any) -> None:
    """Users are told when they give the script that it needs another server."""
    with pytest.raises(ValueError, match=r"needs LocalPubSub\(relay=True\)"):
        LocalPubSub(script=script)


@pytest.mark.parametrize("script", ["never", 1, {1: "never"}])
def test_what_is_no_script_is_refused(script: Any) -> None:
    """Users are told about a wrong type when they give it, and the old script stays."""
    server = LocalPubSub(script=OK)
    with pytest.raises(TypeError, match="script"):
        server.script = script
    assert server.script is OK


@pytest.mark.parametrize(
    "fields",
    [
        {"delay": -1},
        {"delay": float("nan")},
        {"ids": -1},
        {"never": True, "cut": True},
        {"never": True, "delay": 1},
        {"never": True, "until": threading.Event()},
        {"cut": True, "status": grpc.StatusCode.ABORTED},
        {"ids": 1, "status": grpc.StatusCode.ABORTED},
        {"ids": 1, "never": True},
    ],
)
def test_contradictory_replies_are_refused(fields: dict[str, Any]) -> None:
    """Users cannot write a reply of which a part would be ignored."""
    with pytest.raises(ValueError, match=r".+"):
        Reply(**fields)


def test_a_status_is_one_of_grpc() -> None:
    """Users are told that a number or a name is no status."""
    with pytest.raises(TypeError, match=r"grpc\.StatusCode"):
        Reply(status="UNAVAILABLE")
