"""One soak: a load, a programme of faults, and a look at all accounts once a second."""

from __future__ import annotations

import contextlib
import threading
import time
from array import array
from typing import TYPE_CHECKING

from benchmarks.soaking import verdict
from benchmarks.soaking.faults import CALM, FAULTS, programme
from benchmarks.soaking.findings import Findings, Second
from benchmarks.soaking.host import hosting
from benchmarks.soaking.ledger import Ledger
from benchmarks.soaking.load import Caller, Worker
from benchmarks.soaking.messages import BUNDLES, DIRECT
from benchmarks.soaking.publishers import SETTINGS, TOTAL_TIMEOUT, make_publisher, make_write_fn
from benchmarks.soaking.watch import MIB, growth, usage
from demo.result import percentile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from beam_hedge import HedgingPublisher
    from benchmarks.soaking.faults import Phase
    from benchmarks.soaking.host import Audit, Host
    from benchmarks.soaking.load import Producer

_SECOND = 1.0
# Waits for flow control, for a batch of the bundle and for parts of a refused one may follow each other.
_PATIENCE = 4 * TOTAL_TIMEOUT
_POLL = 0.05
# Losers of a race have a second to end, and their permits end with them.
_GRACE = 5.0
_WORKERS, _CALLERS = 4, 2


def soak(seconds: float, seed: int, service: str, rate: float) -> Findings:
    """Publishes while things go wrong.

    Args:
        seconds: For how long; what is out at the end takes a little more.
        seed: Of faults and load.
        service: "local" or "emulator".
        rate: Messages a second, about.

    Returns:
        What it came to. The first broken promise of each kind is in it, and the soak goes on.
    """
    threads = set(threading.enumerate())
    with hosting(service, seed) as host:
        soaking = _Soaking(host, seed, rate)
        with soaking.publishing():
            for phase in programme(FAULTS[service], seconds, seed):
                soaking.last(phase)
            soaking.end()
    left = [each.name for each in threading.enumerate() if each not in threads]
    if left:
        soaking.findings.object_to([f"threads are left behind: {', '.join(left)}"])
    samples = [each.usage for each in soaking.findings.seconds]
    soaking.findings.object_to(growth(samples))
    return soaking.findings


class _Soaking:
    """The state of a soak; used on one thread."""

    def __init__(self, host: Host, seed: int, rate: float) -> None:
        self.findings = Findings()
        self._host = host
        self._seed = seed
        self._gate = threading.Event()
        self._gate.set()
        self._ledgers = {BUNDLES: Ledger(), DIRECT: Ledger()}
        # Two thirds of the messages are the sink's: 13.5 a bundle, and 2 a batch without it.
        self._pauses = (_WORKERS * 13.5 / (rate * 2 / 3), _CALLERS * 2 / (rate / 3))
        self._publishers: dict[str, Callable[[], HedgingPublisher]] = {}
        self._producers: list[Producer] = []
        self._begin = time.monotonic()
        self._next_look = _SECOND

    @contextlib.contextmanager
    def publishing(self) -> Iterator[None]:
        """Starts the load, and closes the publishers at the end."""
        # Holds a lease all the time: the sink's publisher is the same one from beginning to end.
        holder = make_write_fn()
        holder.setup()
        direct = make_publisher()
        self._publishers = {
            BUNDLES: lambda: holder._lease.publisher,  # noqa: SLF001 - to look at, not to use
            DIRECT: lambda: direct,
        }
        bundles, calls = self._pauses
        self._producers += [
            Worker(number, self._ledgers[BUNDLES], bundles, self._seed, self._gate)
            for number in range(_WORKERS)
        ]
        self._producers += [
            Caller(direct, number, self._ledgers[DIRECT], calls, self._seed, self._gate)
            for number in range(_WORKERS, _WORKERS + _CALLERS)
        ]
        try:
            yield
        finally:
            # Nothing is out. The sink's publisher would linger for a minute, and a leak of permits would keep
            # both from closing by themselves.
            for publisher in self._publishers.values():
                publisher().close(timeout=0)
            holder.teardown()

    def last(self, phase: Phase) -> None:
        """Has one phase last, and looks at everything each second of it."""
        begin = self._now()
        name = phase.fault.name
        self._host.disturb(name)
        if phase.fault.idle:
            self._gate.clear()
        end = begin + phase.seconds
        while self._next_look < end:
            time.sleep(max(0.0, self._next_look - self._now()))
            self._look(name)
        time.sleep(max(0.0, end - self._now()))
        if phase.fault.idle:
            self._await_idle(time.monotonic() + _PATIENCE)
            self._gate.set()
        self.findings.phases.append((begin, self._now(), name))
        print(f"  {self._now():5.0f} s  {name}{self._totals()}", flush=True)

    def end(self) -> None:
        """Stops the load, waits for what is out, and looks at everything for the last time."""
        self._host.disturb(CALM.name)
        for producer in self._producers:
            producer.stop.set()
        deadline = time.monotonic() + _PATIENCE
        for producer in self._producers:
            producer.thread.join(max(0.0, deadline - time.monotonic()))
            if producer.thread.is_alive():
                self.findings.object_to([f"{producer.thread.name} hangs"])
        self._await_idle(deadline)
        audit = self._look(CALM.name)
        deadline = time.monotonic() + verdict.MISSING_SECONDS
        while audit.missing and time.monotonic() < deadline:
            time.sleep(_SECOND)
            audit = self._host.audit(array("q"))
        self.findings.object_to(verdict.check_missing(audit.missing, 0.0))
        self.findings.books = {name: ledger.books() for name, ledger in self._ledgers.items()}
        for name, books in self.findings.books.items():
            self.findings.object_to(verdict.check_waits(name, books, 0.0))
        self.findings.hedges = audit.hedges
        self.findings.copies = audit.copies

    def _now(self) -> float:
        return time.monotonic() - self._begin

    def _await_idle(self, deadline: float) -> None:
        """Waits until nobody waits, and then for the permits."""
        ledgers = self._ledgers.values()
        while any(ledger.books().out for ledger in ledgers) and time.monotonic() < deadline:
            time.sleep(_POLL)
        deadline = time.monotonic() + _GRACE
        while (found := self._permits(idle=True)) and time.monotonic() < deadline:
            time.sleep(_POLL)
        self.findings.object_to(found)

    def _permits(self, *, idle: bool) -> list[str]:
        return [
            violation
            for name, publisher in self._publishers.items()
            for violation in verdict.check_permits(name, repr(publisher()), idle=idle)
        ]

    def _look(self, fault: str) -> Audit:
        """Looks at everything."""
        acknowledged = array("q")
        for ledger in self._ledgers.values():
            acknowledged += ledger.take_acknowledged()
        # Before the books: whatever paid for a hedge that is counted now is in them.
        audit = self._host.audit(acknowledged)
        found = verdict.check_missing(audit.missing) + self._permits(idle=False)
        latencies: list[float] = []
        all_hedges = 0
        for name, ledger in self._ledgers.items():
            books = ledger.books()
            all_hedges += books.hedges
            found += verdict.check_sums(name, books)
            found += verdict.check_waits(name, books, _PATIENCE)
            found += verdict.check_budget(name, audit.hedges[name], books, SETTINGS)
            tokens = self._publishers[name]().token_bucket.milli_tokens
            found += verdict.check_tokens(name, tokens, SETTINGS)
            latencies += ledger.take_latencies()
        found += [f"{each.thread.name} failed: {each.error!r}" for each in self._producers if each.error]
        self.findings.object_to(found)
        self._note(fault, latencies, len(acknowledged), all_hedges)
        self._next_look = self._now() + _SECOND
        return audit

    def _note(self, fault: str, latencies: list[float], messages: int, all_hedges: int) -> None:
        latencies.sort()
        p50, p99 = ((percentile(latencies, each) if latencies else None) for each in (50, 99))
        hedges = all_hedges - sum(each.hedges for each in self.findings.seconds)
        second = Second(usage(self._now()), fault, messages, hedges, p50, p99)
        self.findings.seconds.append(second)
        self.findings.latencies_ms.setdefault(fault, array("d")).extend(latencies)

    def _totals(self) -> str:
        held = self.findings.seconds[-1].usage if self.findings.seconds else usage()
        messages = sum(each.messages for each in self.findings.seconds)
        text = f": {messages:,} messages, {held.rss / MIB:.0f} MiB, {held.threads} threads"
        return text + "".join(f"\n        BROKEN: {each}" for each in self.findings.violations)
