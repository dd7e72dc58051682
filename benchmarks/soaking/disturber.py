"""Has things go wrong with a service and with the path to it, one after the other."""

from __future__ import annotations

import contextlib
import queue
import random
import threading
from typing import TYPE_CHECKING

from benchmarks.soaking.faults import CALM

if TYPE_CHECKING:
    from benchmarks.soaking.faults import Fault
    from benchmarks.soaking.services import Path, Service

_TICK = 0.7
_DELAY = 0.05
_FREEZE = (0.5, 2.0)


class Disturber:
    """A daemon thread on which faults begin, go on and end. It ends with `close()`.

    Args:
        service: What is disturbed.
        path: What leads there.
        seed: Of the choice of connections.
    """

    def __init__(self, service: Service, path: Path, seed: int) -> None:
        self._service = service
        self._path = path
        self._rng = random.Random(seed)
        self._queue: queue.Queue[Fault | None] = queue.Queue()
        self._begin = {
            "outage": self._go_away,
            "restart": self._restart,
            "pause": service.stop,
            "black_hole": self._swallow,
        }
        self._again = {"freeze": self._freeze, "cut": self._cut, "slow": self._slow}
        self._end = {"outage": self._come_back, "pause": service.start, "slow": self._hurry}
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def disturb(self, fault: Fault) -> None:
        """Ends the present fault and begins the next one, soon."""
        self._queue.put(fault)

    def close(self) -> None:
        """Ends the present fault and the thread."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        try:
            fault: Fault | None = CALM
            while fault is not None:
                fault = self._last(fault)
        except BaseException as error:  # noqa: BLE001 - told to the soak, which fails
            self.error = error

    def _last(self, fault: Fault) -> Fault | None:
        """Has a fault last until the next one comes, which is returned."""
        self._service.answer(fault)
        self._begin.get(fault.act, _nothing)()
        again = self._again.get(fault.act, _nothing)
        while True:
            again()
            with contextlib.suppress(queue.Empty):
                following = self._queue.get(timeout=_TICK)
                break
        self._end.get(fault.act, _nothing)()
        return following

    def _any_connection(self) -> list[int]:
        ports = [each.client_port for each in self._path.relay.connections()]
        return self._rng.sample(ports, 1) if ports else []

    def _freeze(self) -> None:
        for port in self._any_connection():
            with contextlib.suppress(LookupError):
                self._path.relay.connection(port).freeze(self._rng.uniform(*_FREEZE))

    def _swallow(self) -> None:
        for port in self._any_connection():
            with contextlib.suppress(LookupError):
                self._path.relay.connection(port).black_hole()

    def _cut(self) -> None:
        for port in self._any_connection():
            self._path.relay.cut(port)

    def _slow(self, delay: float = _DELAY) -> None:
        for each in self._path.relay.connections():
            with contextlib.suppress(LookupError):
                self._path.relay.connection(each.client_port).slow(delay)

    def _hurry(self) -> None:
        self._slow(0.0)

    def _restart(self) -> None:
        # The relay stays, so that the clients get the server's farewell.
        self._service.stop()
        self._service.start()

    def _go_away(self) -> None:
        self._path.stop()
        self._service.stop()

    def _come_back(self) -> None:
        self._service.start()
        self._path.start()


def _nothing() -> None:
    """Some faults change answers only."""
