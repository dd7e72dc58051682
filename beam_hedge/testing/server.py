"""LocalPubSub: an embedded Pub/Sub for tests and demonstrations."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from beam_hedge.testing.limits import MAX_REQUEST_BYTES
from beam_hedge.testing.listener import MAX_PORT, Listener
from beam_hedge.testing.profile import LatencyProfile
from beam_hedge.testing.publish_call import PublishCalls
from beam_hedge.testing.publisher_service import PublisherService
from beam_hedge.testing.relay_controls import RelayControls
from beam_hedge.testing.reply import check_script
from beam_hedge.testing.subscriber_service import SubscriberService
from beam_hedge.testing.topic_controls import TopicControls
from beam_hedge.testing.topics import Topics

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Iterator

    from typing_extensions import Self

    from beam_hedge.testing.ledger import Ledger
    from beam_hedge.testing.record import RequestRecord
    from beam_hedge.testing.reply import Script


_EMULATOR = "PUBSUB_EMULATOR_HOST"


class LocalPubSub(TopicControls, RelayControls):
    """An embedded Pub/Sub over real gRPC, with latencies, faults and a record of all publish calls.

    It serves the clients of google-cloud-pubsub and Beam's sources and sinks. Use it as a context manager, or
    with `start()` and `stop()`; it can be started again on its port and keeps its topics. All methods may be
    called from any thread. A publish request that Pub/Sub would refuse (unknown topic, empty message, too
    large) is refused at once, unless the script gives it an error of its own.

    Args:
        port: The port to listen on; 0, the default, takes a free one.
        host: The address to listen on; default 127.0.0.1, which only this machine reaches.
        profile: The latencies of publish calls, from arrival to answer: a `LatencyProfile`, or text for its
            `parse()`; default "none".
        seed: The seed of the latencies: the n-th publish call draws the same one in each run.
        store: "arrival" (default) or "answer": when the messages of a publish call are stored. A call that is
            cancelled after that stays stored.
        script: What becomes of publish calls, see `Script`; default: all are answered.
        record: How many publish calls `requests` keeps; default 10,000, 0 turns it off.
        keep_messages: False is for load: messages are counted, but not kept and not checked one by one, and
            there are no subscriptions.
        auto_create_topics: Whether publishing or subscribing to an unknown topic makes it; default False.
        relay: True puts a TCP relay in front, through which connections can be frozen, slowed and cut.
        max_request_bytes: The largest publish request that is accepted; default 10,000,000.
        max_receive_bytes: GRPC's own limit for a request; default -1, none.
        pull_wait: How long a pull waits for a first message, in seconds; default 1.
        handlers: The most calls, open streams included, that are served at once; default 4,096.

    Raises:
        ValueError: If a setting is out of range.

    Example:
        >>> with LocalPubSub(profile="fast") as server:
        ...     server.create_topic("projects/p/topics/orders")
        ...     server.ledger().requests
        0
    """

    def __init__(
        self,
        port: int = 0,
        *,
        host: str = "127.0.0.1",
        profile: LatencyProfile | str = "none",
        seed: int = 0,
        store: Literal["arrival", "answer"] = "arrival",
        script: Script | None = None,
        record: int = 10_000,
        keep_messages: bool = True,
        auto_create_topics: bool = False,
        relay: bool = False,
        max_request_bytes: int = MAX_REQUEST_BYTES,
        max_receive_bytes: int = -1,
        pull_wait: float = 1.0,
        handlers: int = 4_096,
    ) -> None:
        if store not in ("arrival", "answer"):
            raise ValueError(f"store must be 'arrival' or 'answer', got {store!r}")
        for name, value, least in (
            ("record", record, 0),
            ("handlers", handlers, 1),
            ("pull_wait", pull_wait, 0),
        ):
            if not value >= least:
                raise ValueError(f"{name} must be {least} or more, got {value!r}")
        if not 0 <= port <= MAX_PORT:
            raise ValueError(f"port must be 0 to {MAX_PORT}, got {port!r}")
        check_script(script, can_cut=relay)
        self._can_cut = relay
        self._listener = Listener(
            host, port, with_relay=relay, max_receive_bytes=max_receive_bytes, handlers=handlers
        )
        self._topics = Topics(auto_create=auto_create_topics, keep_messages=keep_messages)
        self._calls = PublishCalls(
            topics=self._topics,
            profile=LatencyProfile.parse(profile) if isinstance(profile, str) else profile,
            seed=seed,
            store_at_arrival=store == "arrival",
            record=record,
            max_request_bytes=max_request_bytes,
            script=script,
            relay=self._relay,
        )
        self._services = (
            PublisherService(self._topics, self._calls).to_grpc(),
            SubscriberService(self._topics, pull_wait).to_grpc(),
        )

    def start(self) -> Self:
        """Starts to listen, and returns the server; raises `OSError` if the port is taken."""
        self._listener.start(self._services)
        return self

    def stop(self) -> None:
        """Stops: all calls end at once, those that wait included; harmless when repeated."""
        self._listener.stop()

    def __enter__(self) -> Self:
        """Starts the server."""
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        """Stops the server."""
        self.stop()

    def __repr__(self) -> str:
        state = "running" if self._listener.running else "stopped"
        return f"<LocalPubSub {self._listener.address} {state}, {self.ledger()}>"

    @property
    def endpoint(self) -> str:
        """The address, a colon and the port; raises `RuntimeError` if it has no port yet."""
        if self._listener.port == 0:
            raise RuntimeError("the server has no port yet: start it first")
        return self._listener.address

    @contextmanager
    def environment(self) -> Iterator[None]:
        """Sets PUBSUB_EMULATOR_HOST, so that new clients of this process use the server; restores it after."""
        before = os.environ.get(_EMULATOR)
        os.environ[_EMULATOR] = self.endpoint
        try:
            yield
        finally:
            os.environ.pop(_EMULATOR)
            if before is not None:
                os.environ[_EMULATOR] = before

    @property
    def script(self) -> Script | None:
        """What becomes of publish calls; it may be set while the server runs."""
        return self._calls.script

    @script.setter
    def script(self, script: Script | None) -> None:
        check_script(script, can_cut=self._can_cut)
        self._calls.script = script

    @property
    def requests(self) -> tuple[RequestRecord, ...]:
        """The last publish calls, ordered by number, as they are at the moment."""
        return self._calls.recorder.snapshot()

    @property
    def latencies(self) -> array[float]:
        """The seconds that each publish call drew from the profile; call 1 is at index 0."""
        return self._calls.latencies[:]

    @property
    def handler_threads(self) -> int:
        """The number of threads that run handlers; idle ones end after a second."""
        return self._listener.threads

    def ledger(self, topic: str | None = None) -> Ledger:
        """Returns the counts of publish calls and messages, of one topic or of all."""
        return self._calls.books.ledger(topic)

    def wait_for(
        self, condition: Callable[[Ledger], bool], *, topic: str | None = None, timeout: float = 10.0
    ) -> Ledger:
        """Waits until the ledger fulfils a condition.

        Args:
            condition: A function of the ledger, such as `lambda ledger: ledger.open == 2`. It is asked at
                each change, so it must be quick.
            topic: The topic whose ledger it is; default: of all.
            timeout: How long to wait, in seconds; default 10.

        Returns:
            The ledger that fulfilled the condition.

        Raises:
            TimeoutError: If that does not happen in time; the text holds the ledger.
        """
        return self._calls.books.wait_for(condition, topic, timeout)
