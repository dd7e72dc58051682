"""C17. A sink that was pickled with something live in it, or with a pickler it was not made for.

The launch failed with an error about locks and channels, or each worker got settings other than the user's.
"""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import cloudpickle
import dill
import pytest

from beam_hedge import HedgingSettings, WriteToPubSubHedged
from tests.beam.pipelines import RUNNERS, make_fn, run_bundle, run_pipeline
from tests.server.serving import TOPIC, serving

if TYPE_CHECKING:
    from types import ModuleType

SETTINGS = HedgingSettings(hedge_delay=9, max_tokens=3)
ELEMENTS = [b"one", b"two", b"three"]


@pytest.mark.parametrize("pickler", [pickle, cloudpickle, dill], ids=lambda module: str(module.__name__))
def test_round_trips_before_and_after_setup(pickler: ModuleType) -> None:
    """A copy has equal settings and nothing live, whether the original was at work or not."""
    with serving() as server:
        write_fn = make_fn(SETTINGS)
        before = pickler.loads(pickler.dumps(write_fn))
        write_fn.setup()
        run_bundle(write_fn, [b"at work"])
        after = pickler.loads(pickler.dumps(write_fn))
        for copy in (before, after):
            assert copy._config == write_fn._config
            assert set(copy.__dict__) == set(make_fn(SETTINGS).__dict__)
            copy.setup()
            run_bundle(copy, ELEMENTS)
            copy.teardown()
        write_fn.teardown()
        assert Counter(message.data for message in server.messages(TOPIC)) == Counter(
            [b"at work", *ELEMENTS * 2]
        )


@pytest.mark.parametrize(
    "options",
    [
        [*RUNNERS["fn_api"], "--pickle_library=cloudpickle"],
        [*RUNNERS["fn_api"], "--pickle_library=dill"],
        [*RUNNERS["bundle_based"], "--pickle_library=dill"],
        [*RUNNERS["processes"], "--pickle_library=dill"],
    ],
    ids=["cloudpickle", "dill", "bundle based", "processes"],
)
def test_three_messages_arrive_in_every_mode(options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The sink works with both of Beam's picklers and in worker processes."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    with serving() as server:
        run_pipeline(ELEMENTS, WriteToPubSubHedged(TOPIC, SETTINGS), options)
        assert Counter(message.data for message in server.messages(TOPIC)) == Counter(ELEMENTS)
