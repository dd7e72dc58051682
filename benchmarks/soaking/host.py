"""The process of a service: it serves, has things go wrong, and looks at what is stored.

What it needs of memory is its own, so that the memory of the process that publishes can be judged.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import grpc
from google.pubsub_v1 import PublisherClient, SubscriberClient
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport

from benchmarks.soaking.auditor import Auditor, now
from benchmarks.soaking.disturber import Disturber
from benchmarks.soaking.emulator import emulator_process
from benchmarks.soaking.faults import BY_NAME
from benchmarks.soaking.messages import TOPICS, subscription_of
from benchmarks.soaking.services import EmulatorService, LocalService, Path

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

    from benchmarks.soaking.services import Service

_EMULATOR = "PUBSUB_EMULATOR_HOST"
_END_SECONDS = 30


@dataclass(frozen=True)
class Audit:
    """What the service's process has seen.

    Attributes:
        hedges: Hedges that arrived, by topic; 0 where nobody counts them.
        missing: For how many seconds each acknowledged message has not been seen.
        copies: How many of the messages that are stored are copies of others.
    """

    hedges: dict[str, int]
    missing: list[float]
    copies: int


class Host:
    """A service in its own process.

    Args:
        pipe: The way to the process.
    """

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self.endpoint = str(self._ask(None))

    def disturb(self, fault: str) -> None:
        """Ends the present fault, and begins another."""
        self._ask(fault)

    def audit(self, acknowledged: array[int]) -> Audit:
        """Compares what publishers were told with what is stored.

        Args:
            acknowledged: Packed ids of which publishers were told since the last call.
        """
        audit = self._ask(acknowledged)
        assert isinstance(audit, Audit)
        return audit

    def _ask(self, question: Any) -> Any:
        try:
            self._pipe.send(question)
            answer = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise RuntimeError("the service's process has ended; what it printed says why") from error
        if isinstance(answer, BaseException):
            raise answer
        return answer


@contextlib.contextmanager
def hosting(kind: str, seed: int) -> Iterator[Host]:
    """Starts a service in a process of its own, and points the environment at it.

    Args:
        kind: "local" or "emulator".
        seed: Of all that is random there.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_host, args=(kind, seed, theirs), daemon=True)
    process.start()
    theirs.close()
    before = os.environ.get(_EMULATOR)
    try:
        host = Host(ours)
        os.environ[_EMULATOR] = host.endpoint
        yield host
    finally:
        os.environ.pop(_EMULATOR, None)
        if before is not None:
            os.environ[_EMULATOR] = before
        # The process ends when it sees this.
        ours.close()
        process.join(_END_SECONDS)


def _host(kind: str, seed: int, parent: Connection) -> None:
    with contextlib.ExitStack() as stack:
        service: Service
        if kind == "emulator":
            service = EmulatorService(*stack.enter_context(emulator_process()))
        else:
            service = LocalService(seed)
        stack.callback(service.close)
        channel = stack.enter_context(grpc.insecure_channel(f"127.0.0.1:{service.port}"))
        _make_topics(channel)
        auditor = Auditor(channel, [subscription_of(topic) for topic in TOPICS])
        stack.callback(auditor.close)
        path = Path(service.port)
        stack.callback(path.stop)
        disturber = Disturber(service, path, seed)
        stack.callback(disturber.close)
        # Ends when the parent closes its end, or with the parent.
        with contextlib.suppress(EOFError):
            while True:
                question = parent.recv()
                parent.send(disturber.error or _answer(question, service, path, disturber, auditor))


def _answer(question: Any, service: Service, path: Path, disturber: Disturber, auditor: Auditor) -> Any:
    if question is None:
        return f"127.0.0.1:{path.port}"
    if isinstance(question, str):
        disturber.disturb(BY_NAME[question])
        return None
    # First, so that no answer to a hedge that is counted here can come after it.
    hedges = {topic: service.hedges(topic) for topic in TOPICS}
    return Audit(hedges, auditor.stored.check(question, now()), auditor.stored.copies)


def _make_topics(channel: grpc.Channel) -> None:
    publisher = PublisherClient(transport=PublisherGrpcTransport(channel=channel))
    subscriber = SubscriberClient(transport=SubscriberGrpcTransport(channel=channel))
    for topic in TOPICS:
        publisher.create_topic(name=topic)
        subscriber.create_subscription(name=subscription_of(topic), topic=topic)
