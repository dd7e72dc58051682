"""Those who publish: threads with a DoFn each, as a worker has them, and threads that use a publisher."""

from __future__ import annotations

import abc
import functools
import random
import threading
from typing import TYPE_CHECKING, Any

from apache_beam.io.gcp.pubsub import PubsubMessage
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindows

from beam_hedge import PublishError
from benchmarks.soaking.ledger import Fate
from benchmarks.soaking.messages import id_of, make_data
from benchmarks.soaking.publishers import make_write_fn

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Sequence

    from beam_hedge import HedgingPublisher, PublishOutcome
    from beam_hedge.write_fn import WriteFn
    from benchmarks.soaking.ledger import Ledger

_MOST_IN_BUNDLE = 25
_MOST_IN_BATCH = 3
# Of the bundles, of the batches.
_POISONED = 0.05
_CANCELLED = 0.05
_TOO_LONG = {"note": "x" * 1025}
# What a runner does with a DoFn whose bundle failed, or, now and then, did not.
_KEPT, _TORN_DOWN, _DROPPED = _WAYS = ("kept", "torn down", "dropped")
_RENEWED = 0.02


class Producer(abc.ABC):
    """A daemon thread that publishes until `stop` is set, and then finishes what it has in hand.

    Args:
        number: Its own, which its messages carry.
        ledger: Where it keeps its account.
        pause: Seconds between two bundles or batches, on average.
        seed: Of all that it draws.
        gate: While it is closed, nothing new is published.

    Attributes:
        error: What ended the thread before its time.
    """

    def __init__(self, number: int, ledger: Ledger, pause: float, seed: int, gate: threading.Event) -> None:
        self.number = number
        self.ledger = ledger
        self.rng = random.Random(f"{seed} {number}")
        self.stop = threading.Event()
        self.error: BaseException | None = None
        self._gate = gate
        self._pause = pause
        self.thread = threading.Thread(target=self._run, name=f"soak-{number}", daemon=True)
        self.thread.start()

    @abc.abstractmethod
    def publish(self) -> None:
        """Publishes once."""

    def close(self) -> None:  # noqa: B027 - most have nothing to end
        """Ends what the thread holds; called on it."""

    def _run(self) -> None:
        try:
            while not self.stop.wait(self.rng.expovariate(1 / self._pause)):
                self._gate.wait()
                self.publish()
            self.close()
        except BaseException as error:  # noqa: BLE001 - told to the soak, which fails
            self.error = error


class Worker(Producer):
    """Does bundles with the sink's DoFn; a bundle that fails is tried again until it succeeds."""

    def __init__(self, *args: Any) -> None:
        self._write_fn: WriteFn | None = None
        super().__init__(*args)

    def publish(self) -> None:
        """Does one bundle."""
        numbers = self.ledger.hand_over(self.number, self.rng.randint(2, _MOST_IN_BUNDLE))
        elements = self._make_elements(numbers)
        while not self._try(numbers, elements):
            # A runner, too, takes its time.
            self.stop.wait(self._pause)
        if self.rng.random() < _RENEWED:
            self._after(self.rng.choice(_WAYS))

    def close(self) -> None:
        """Tears the DoFn down."""
        self._after(_TORN_DOWN)

    def _make_elements(self, numbers: range) -> list[PubsubMessage]:
        data = [make_data(self.number, number, self.rng) for number in numbers]
        attributes: list[dict[str, str]] = [{} for _ in numbers]
        if self.rng.random() < _POISONED:
            # With others in its batch: one that is refused as a whole is nobody's fault.
            data[0] = make_data(self.number, numbers[0], self.rng, poison=True)
        if self.rng.random() < _POISONED:
            attributes[-1] = _TOO_LONG
        return [PubsubMessage(*each) for each in zip(data, attributes, strict=True)]

    def _try(self, numbers: range, elements: Sequence[PubsubMessage]) -> bool:
        """Returns whether the bundle succeeded."""
        try:
            outputs = self._run_bundle(elements)
        except PublishError as error:
            self.ledger.note([error])
            self.ledger.wait_again(self.number, numbers)
            self._after(self.rng.choice(_WAYS))
            return False
        # The outputs of a bundle that failed are nobody's.
        outcomes, dead = [], []
        for output in outputs:
            if isinstance(output, TaggedOutput):
                dead.append(id_of(output.value.value.element.data)[1])
            else:
                outcomes.append(output.value)
        self.ledger.note(outcomes, messages=len(numbers) - len(dead))
        self.ledger.tell(self.number, numbers, Fate.ACKNOWLEDGED, apart=dead)
        return True

    def _run_bundle(self, elements: Sequence[PubsubMessage]) -> list[Any]:
        if self._write_fn is None:
            write_fn = make_write_fn()
            write_fn.setup()
            self._write_fn = write_fn
        # Its class is that of the plain sink, too, whose bundles have no outputs.
        tracking: Any = self._write_fn
        tracking.start_bundle()
        outputs: list[Any] = []
        for each in elements:
            outputs += tracking.process(each, GlobalWindows.windowed_value(each))
        return [*outputs, *tracking.finish_bundle()]

    def _after(self, way: str) -> None:
        if way == _TORN_DOWN and self._write_fn is not None:
            self._write_fn.teardown()
        if way != _KEPT:
            self._write_fn = None


class Caller(Producer):
    """Publishes small batches with a publisher, and cancels some of them."""

    def __init__(self, publisher: HedgingPublisher, *args: Any) -> None:
        self._publisher = publisher
        super().__init__(*args)

    def publish(self) -> None:
        """Publishes one batch."""
        numbers = self.ledger.hand_over(self.number, self.rng.randint(1, _MOST_IN_BATCH))
        future = self._publisher.publish([make_data(self.number, number, self.rng) for number in numbers])
        future.add_done_callback(functools.partial(self._done, numbers))
        if self.rng.random() < _CANCELLED:
            self.stop.wait(self.rng.uniform(0, self._pause))
            future.cancel()

    def _done(self, numbers: range, future: concurrent.futures.Future[PublishOutcome]) -> None:
        fate = Fate.CANCELLED
        if not future.cancelled():
            error = future.exception()
            fate = Fate.FAILED if error else Fate.ACKNOWLEDGED
            if error is None:
                self.ledger.note([future.result()], messages=len(numbers))
            elif isinstance(error, PublishError):
                self.ledger.note([error])
            else:
                self.error = error
        self.ledger.tell(self.number, numbers, fate)
