"""Random callers, answers and changes of mind: everybody is told what is theirs, and the counts add up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
from hypothesis import given, settings
from hypothesis import strategies as st

from beam_hedge import HedgingSettings, PublishError, PublishOutcome, RetrySettings
from tests.unit.dispatching import contents, dispatching

if TYPE_CHECKING:
    from concurrent.futures import Future

    from tests.unit.dispatching import Dispatching

THREADS = 4
HEDGED = HedgingSettings(hedge_delay=1, initial_tokens=5)
STATUSES = [
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.UNAVAILABLE,
]

threads = st.integers(1, THREADS)
steps = st.one_of(
    st.tuples(st.just("publish"), threads, st.integers(1, 3)),
    st.tuples(st.just("look"), st.just(0), st.just(0)),
    st.tuples(st.just("wait"), st.integers(1, 3), st.just(0)),
    st.tuples(st.just("answer"), st.integers(0, 9), st.just(0)),
    st.tuples(st.just("refuse"), st.integers(0, 9), st.integers(0, len(STATUSES) - 1)),
    st.tuples(st.just("short"), st.integers(0, 9), st.integers(0, 2)),
)


class Run:
    """One random run.

    Attributes:
        published: Each future with what its batch holds.
    """

    def __init__(self, bench: Dispatching) -> None:
        self._bench = bench
        self.published: dict[Future[PublishOutcome], list[bytes]] = {}

    def step(self, kind: str, number: int, more: int) -> None:
        """Does one step."""
        bench = self._bench
        if kind == "publish":
            data = [b"%d-%d" % (len(self.published), part) for part in range(more)]
            self.published[bench.accept(number, *data)] = data
        elif kind == "cancel":
            futures = list(self.published)
            if futures:
                futures[number % len(futures)].cancel()
                bench.run()
        elif kind in {"look", "wait"}:
            bench.run(number)
        elif out := [call for call in bench.calls if call.out]:
            call = out[number % len(out)]
            if kind == "answer":
                call.answer(*(data.decode() for data in contents(call)))
            elif kind == "refuse":
                call.refuse(STATUSES[more])
            else:
                call.answer_ids(len(contents(call)) + 1)
            bench.run()

    def end(self) -> None:
        """Answers until nothing is out."""
        bench = self._bench
        bench.run()
        while bench.futures._open:
            out = [call for call in bench.calls if call.out]
            if out:
                bench.answer(out[0])
            else:
                # What is left waits to retry.
                bench.run(1)

    def told(self) -> list[PublishOutcome | PublishError]:
        """Returns what the callers were told, after looking at whose it is."""
        results: list[PublishOutcome | PublishError] = []
        for future, data in self.published.items():
            assert future.done()
            if future.cancelled():
                continue
            error = future.exception(0)
            assert error is None or isinstance(error, PublishError)
            result = error or future.result(0)
            assert result.messages == len(data)
            assert result.attempts == 1 + result.retries + result.hedges
            if isinstance(result, PublishOutcome):
                assert result.message_ids == tuple(each.decode() for each in data)
            results.append(result)
        return results


@given(script=st.lists(steps, max_size=40))
@settings(max_examples=60, deadline=None)
def test_counts_add_up_whatever_happens(script: list[tuple[str, int, int]]) -> None:
    """Sums over outcomes and errors are exactly the attempts that were made and how each of them ended."""
    with dispatching(HEDGED, RetrySettings(initial_retry_delay=0.1)) as bench:
        bench.warm(*range(1, THREADS))
        tokens = bench.bucket.milli_tokens
        run = Run(bench)
        for step in script:
            run.step(*step)
        run.end()
        results = run.told()
        assert sum(result.attempts for result in results if not result.shared) == len(bench.calls)
        assert sum(result.hedges for result in results) == sum(call.hedge > 0 for call in bench.calls)
        assert sum(result.attempts_cancelled for result in results) == sum(c.cancelled() for c in bench.calls)
        # Each request that was published earned one refill, whoever shared it.
        answered = sum(not result.shared for result in results if isinstance(result, PublishOutcome))
        hedges = sum(result.hedges for result in results)
        assert bench.bucket.milli_tokens == tokens + 100 * answered - 1000 * hedges
        refused = sum(len(result.refusals) for result in results)
        assert refused == len(bench.calls) - answered - sum(call.cancelled() for call in bench.calls)


@given(
    script=st.lists(
        st.one_of(steps, st.tuples(st.just("cancel"), st.integers(0, 9), st.just(0))),
        max_size=40,
    )
)
@settings(max_examples=60, deadline=None)
def test_everybody_is_told_whoever_cancels(script: list[tuple[str, int, int]]) -> None:
    """Each caller gets its own ids, its own error or its cancellation; no permit and no wait is left over."""
    with dispatching(HEDGED, RetrySettings(initial_retry_delay=0.1)) as bench:
        bench.warm(*range(1, THREADS))
        run = Run(bench)
        for step in script:
            run.step(*step)
        run.end()
        assert sum(result.attempts for result in run.told() if not result.shared) <= len(bench.calls)
        for call in bench.calls:
            held = contents(call)
            whole = [data for data in run.published.values() if data[0] in held]
            # Each batch is in a request whole and in its order, and at most once.
            assert sorted(each for data in whole for each in data) == sorted(held)
            assert all(held[held.index(data[0]) :][: len(data)] == data for data in whole)
