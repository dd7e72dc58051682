"""A dispatcher without a network: callers on threads of their own, and an engine that the test runs."""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from google.pubsub_v1.types import PublishRequest

from beam_hedge.batch import seal
from beam_hedge.dispatcher import Dispatcher
from beam_hedge.flow_control import FlowController, Permits
from beam_hedge.publish_futures import PublishFutures
from beam_hedge.settings import DEFAULT_FLOW_CONTROL, HedgingSettings, RetrySettings
from beam_hedge.testing import FakeClock
from tests.unit.bench import Bench

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from beam_hedge import PublishOutcome
    from beam_hedge.batch import Batch
    from tests.unit.fakes import FakeCall

TOPIC = "projects/p-test/topics/out"
PATIENCE = 20.0


class FakeEngine:
    """Keeps the work that it is handed until the test has it done."""

    def __init__(self) -> None:
        self.alive = True
        self.work: deque[tuple[Callable[..., object], tuple[object, ...]]] = deque()

    def submit(self, callback: Callable[..., object], *args: object) -> None:
        """Takes work."""
        self.work.append((callback, args))

    def run(self) -> None:
        """Does all of it."""
        while self.work:
            callback, args = self.work.popleft()
            callback(*args)


class Dispatching(Bench):
    """One dispatcher over a fake network, and threads that publish; the ids of messages tell their content.

    The clock starts at the real time, at which batches are accepted. The bench owns the threads, and `close`
    ends them.

    Args:
        settings: Hedging.
        retry: Deadlines and retries.
        tracing: Whether each batch is a span.
    """

    def __init__(
        self,
        settings: HedgingSettings | None = HedgingSettings(initial_tokens=50),  # noqa: B008 - frozen
        retry: RetrySettings = RetrySettings(),  # noqa: B008 - frozen
        *,
        tracing: bool = False,
    ) -> None:
        super().__init__(settings, retry, clock=FakeClock(time.monotonic()))
        self.started = self.clock.time()
        self.engine = FakeEngine()
        self.flow = FlowController(DEFAULT_FLOW_CONTROL)
        self.futures = PublishFutures()
        engine: Any = self.engine
        self.dispatcher = Dispatcher(self.policy, engine, self.flow, self.futures, tracing=tracing)
        self._threads: dict[int, ThreadPoolExecutor] = {}

    def on_thread(self, thread: int, work: Callable[[], Any]) -> Any:
        """Does work on a thread, which is the same one for the same number."""
        if thread not in self._threads:
            self._threads[thread] = ThreadPoolExecutor(1)
        return self._threads[thread].submit(work).result(PATIENCE)

    def accept(
        self, thread: int, *data: bytes, topic: str = TOPIC, may_share: bool = True
    ) -> Future[PublishOutcome]:
        """Has a thread publish; the engine does not look at it yet."""
        return self.accept_batch(thread, seal(topic, data or [b"%d" % thread]), may_share=may_share)

    def accept_batch(self, thread: int, batch: Batch, *, may_share: bool = True) -> Future[PublishOutcome]:
        """Has a thread publish a batch."""

        def publish() -> Future[PublishOutcome]:
            permits = Permits(batch.messages, len(batch.request))
            self.flow.acquire(permits)
            try:
                return self.dispatcher.accept(batch, permits, may_share=may_share)
            except BaseException:
                self.flow.release(permits)
                raise

        future: Future[PublishOutcome] = self.on_thread(thread, publish)
        return future

    def run(self, seconds: float = 0.0) -> None:
        """Has the engine look, and time pass."""
        self.engine.run()
        self.clock.advance(seconds)
        while self.engine.work:
            self.engine.run()
            self.clock.run_ready()

    def warm(self, *threads: int) -> None:
        """Has each thread publish a batch and wait for it, then forgets the calls."""
        for thread in threads:
            future = self.accept(thread)
            self.run()
            self.answer(self.calls[-1])
            assert future.done()
        self.calls.clear()

    def answer(self, call: FakeCall) -> None:
        """Answers a call as the service would, and has the engine see that."""
        call.answer(*(data.decode() for data in contents(call)))
        self.run()

    def close(self) -> None:
        """Ends the threads."""
        for thread in self._threads.values():
            thread.shutdown()


@contextmanager
def dispatching(*args: Any, **kwargs: Any) -> Iterator[Dispatching]:
    """Makes such a bench; at its end nothing may be left: no future, no permit, no timer, no work."""
    bench = Dispatching(*args, **kwargs)
    try:
        yield bench
        bench.run()
        assert not bench.futures._open
        assert repr(bench.flow) == "<FlowController 0 batches, 0 messages, 0 B out>"
        assert bench.clock.pending() == 0
        assert not bench.clock.unhandled
        assert not bench.dispatcher._waiting
        assert not any(bench.dispatcher._sender.out.values())
    finally:
        bench.close()


def contents(call: FakeCall) -> list[bytes]:
    """Returns what a call's messages hold."""
    return [message.data for message in PublishRequest.pb().FromString(call.request).messages]
