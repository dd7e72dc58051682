"""What travels to workers: settings, and nothing that lives."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import cloudpickle
import dill
import pytest
from google.auth.credentials import AnonymousCredentials

from beam_hedge import HedgingSettings, RetrySettings, WriteToPubSubHedged
from beam_hedge.testing import NEVER
from tests.beam.pipelines import batches_of, make_fn, run_bundle
from tests.server.serving import PATIENCE, TOPIC, serving

if TYPE_CHECKING:
    from types import ModuleType

    from beam_hedge.write_fn import WriteFn

PICKLERS = pytest.mark.parametrize(
    "pickler", [pickle, cloudpickle, dill], ids=lambda module: str(module.__name__)
)
SETTINGS = HedgingSettings(hedge_delay=0.3, max_tokens=7, refill_ratio=0.05, initial_tokens=3)


def make(**arguments: Any) -> WriteFn:
    """Makes a DoFn with settings that are no defaults."""
    return make_fn(
        SETTINGS,
        retry_settings=RetrySettings(total_timeout=30),
        batch_settings=batches_of(7),
        client_options={"api_endpoint": "localhost:1"},
        **arguments,
    )


def check_equal(copy: WriteFn, write_fn: WriteFn) -> None:
    """Fails unless two DoFns have the same settings and would share a publisher."""
    assert type(copy) is type(write_fn)
    assert copy._config == write_fn._config
    assert hash(copy._config) == hash(write_fn._config)
    assert copy._config.settings == SETTINGS
    assert copy._batch_settings == write_fn._batch_settings
    assert str(copy._config.client_options) == str(write_fn._config.client_options)


@PICKLERS
@pytest.mark.parametrize("with_outcomes", [False, True])
def test_a_dofn_survives_pickling(pickler: ModuleType, with_outcomes: bool) -> None:
    """A worker gets the settings that the pipeline was built with, whichever pickler Beam was told to use."""
    write_fn = make(with_outcomes=with_outcomes, credentials=AnonymousCredentials())
    copy = pickler.loads(pickler.dumps(write_fn))
    check_equal(copy, write_fn)
    check_equal(pickler.loads(pickler.dumps(copy)), write_fn)


@PICKLERS
def test_a_dofn_that_is_at_work_pickles_its_settings_only(pickler: ModuleType) -> None:
    """Nothing live is in a pickle, so a copy starts afresh and the original goes on."""
    with serving(NEVER) as server:
        write_fn = make()
        write_fn.setup()
        write_fn.start_bundle()
        for number in range(8):
            write_fn.process(b"%d" % number)
        server.wait_for(lambda ledger: ledger.open == 1, timeout=PATIENCE)
        dumped = pickler.dumps(write_fn)
        copy = pickler.loads(dumped)
        check_equal(copy, write_fn)
        assert set(copy.__dict__) == set(make().__dict__)
        assert len(dumped) <= len(pickler.dumps(make())) + 16
        server.script = None
        copy.setup()
        assert copy._lease.publisher is write_fn._lease.publisher
        run_bundle(copy, [b"copy"])
        assert b"copy" in {message.data for message in server.messages(TOPIC)}
        copy.teardown()
        write_fn.teardown()


@PICKLERS
def test_settings_survive_pickling(pickler: ModuleType) -> None:
    """Settings can be sent anywhere and stay equal."""
    for value in (SETTINGS, RetrySettings(total_timeout=5)):
        assert pickler.loads(pickler.dumps(value)) == value


@PICKLERS
def test_a_transform_survives_pickling(pickler: ModuleType) -> None:
    """The transform itself can be a part of something that is pickled."""
    transform = WriteToPubSubHedged(TOPIC, SETTINGS, client_options={"api_endpoint": "localhost:1"})
    copy = pickler.loads(pickler.dumps(transform))
    assert copy._config == transform._config


def test_copies_of_credentials_share_a_publisher_and_other_credentials_do_not() -> None:
    """Each worker thread unpickles its own credentials: they are one account, so one publisher serves all."""
    one = make(credentials=AnonymousCredentials())
    copy = pickle.loads(pickle.dumps(one))
    assert copy._config.credentials is not one._config.credentials
    assert copy._config == one._config
    assert make()._config != one._config


def test_credentials_do_not_show() -> None:
    """A configuration that is logged shows no key."""
    transform = WriteToPubSubHedged(TOPIC, client_options={"api_key": "not-a-secret"})
    assert "not-a-secret" not in repr(transform._config)
