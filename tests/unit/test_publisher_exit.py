"""How a `with` block ends its publisher: it drains, unless the program is being stopped."""

from __future__ import annotations

import asyncio

import pytest

from beam_hedge.publisher import HedgingPublisher


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """The timeouts with which publishers were closed."""
    timeouts: list[float | None] = []

    def close(_publisher: HedgingPublisher, timeout: float | None = None) -> None:
        timeouts.append(timeout)

    monkeypatch.setattr(HedgingPublisher, "close", close)
    return timeouts


def _publisher() -> HedgingPublisher:
    # Leaving a block needs nothing of what a publisher is made of.
    return HedgingPublisher.__new__(HedgingPublisher)


def test_a_block_that_ends_well_drains(closed: list[float | None]) -> None:
    """All that was published in the block has its outcome when the block is over, however long it takes."""
    with _publisher() as publisher:
        assert isinstance(publisher, HedgingPublisher)
        assert closed == []
    assert closed == [None]


@pytest.mark.parametrize("error", [ValueError("mine"), TimeoutError()], ids=repr)
def test_a_block_that_fails_drains_and_raises(closed: list[float | None], error: Exception) -> None:
    """An error of the user's own loses no message that was accepted before it."""
    with pytest.raises(type(error)) as raised, _publisher():
        raise error
    assert raised.value is error
    assert closed == [None]


@pytest.mark.parametrize(
    "stop", [KeyboardInterrupt(), SystemExit(3), GeneratorExit(), asyncio.CancelledError()], ids=repr
)
def test_a_block_that_is_stopped_cancels_at_once(closed: list[float | None], stop: BaseException) -> None:
    """Ctrl-C ends the program now; it does not wait ten minutes for a service that is down."""
    with pytest.raises(type(stop)) as raised, _publisher():
        raise stop
    assert raised.value is stop
    assert closed == [0]
