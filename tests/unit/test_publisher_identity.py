"""Which configurations share a publisher, after a pickle too, and that none of them gives a secret away."""

from __future__ import annotations

import pickle
import traceback
from typing import Any

import grpc
import pytest
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.oauth2.credentials import Credentials

from beam_hedge.errors import InvalidSettingError
from tests.unit.configs import TOPIC, make

SECRET = "not-for-any-log"  # noqa: S105 - of this test alone


def user(token: str = SECRET) -> Any:
    """Makes a user's credentials."""
    return Credentials(token, refresh_token=SECRET, client_id="me", client_secret=SECRET)


FULL: dict[str, Any] = {
    "settings": {"hedge_delay": 0.5},
    "retry_settings": {"total_timeout": 60},
    "flow_control": {"message_limit": 5},
    "client_options": {"api_endpoint": "localhost:1", "quota_project_id": "p-quota"},
    "connections": 3,
    "tracing": True,
}


@pytest.mark.parametrize("more", [{}, {"credentials": user()}, {"settings": None}, {"topic": None}], ids=list)
def test_a_pickled_configuration_stays_equal(more: dict[str, Any]) -> None:
    """All copies of a DoFn on a worker share one publisher, however often they were pickled."""
    config = make(**{**FULL, **more})
    copies = [config]
    for _ in range(3):
        copies.append(pickle.loads(pickle.dumps(copies[-1])))
    assert len(set(copies)) == 1
    assert all(copy == config for copy in copies)


def test_a_copy_carries_what_it_needs_to_connect() -> None:
    """A worker publishes to the endpoint, and as the user, that the launch named."""
    copy = pickle.loads(pickle.dumps(make(**FULL, credentials=user())))
    assert copy.credentials.token == SECRET
    assert copy.client_options.api_endpoint == "localhost:1"
    assert copy.client_options.quota_project_id == "p-quota"


def test_configurations_that_say_the_same_are_equal() -> None:
    """Two sinks with the same arguments share a publisher, in whatever form the arguments came."""
    options = ClientOptions(api_endpoint="localhost:1", quota_project_id="p-quota")
    assert make(**FULL) == make(**{**FULL, "client_options": options})
    assert make(credentials=user()) == make(credentials=user())
    assert make(credentials=AnonymousCredentials()) == make(credentials=AnonymousCredentials())


@pytest.mark.parametrize(
    "change",
    [
        {"topic": TOPIC + "2"},
        {"topic": None},
        {"settings": None},
        {"settings": {"hedge_delay": 0.6}},
        {"retry_settings": {"total_timeout": 61}},
        {"flow_control": {"message_limit": 6}},
        {"connections": 4},
        {"tracing": False},
        {"client_options": None},
        {"client_options": {"api_endpoint": "localhost:2", "quota_project_id": "p-quota"}},
        {"credentials": None},
        {"credentials": user("another")},
    ],
    # Workers of one test run must agree on the names, so nothing with an address in it.
    ids=lambda change: "-".join(f"{name}-{type(value).__name__}" for name, value in change.items()),
)
def test_configurations_that_differ_are_not_equal(change: dict[str, Any]) -> None:
    """Nobody's messages go out with another's settings, or as somebody else."""
    config = make(**FULL, credentials=user())
    assert config != make(**{**FULL, "credentials": user(), **change})
    assert config == make(**{**FULL, "credentials": user()})


@pytest.mark.parametrize(
    "credentials",
    [SECRET, {"token": SECRET}, [SECRET], SECRET.encode(), True, 0, grpc.local_channel_credentials(), user],
    ids=lambda value: type(value).__name__,
)
def test_credentials_of_another_type_are_refused(credentials: Any) -> None:
    """The path of a key file, say, is refused when the sink is built; the error shows its type only."""
    with pytest.raises(InvalidSettingError, match=r"^credentials must be google\.auth") as raised:
        make(credentials=credentials)
    assert raised.value.value == type(credentials).__name__


class _Unpicklable(AnonymousCredentials):
    """Credentials that stay where they are."""

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle this")


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("credentials", _Unpicklable()),  # type: ignore[no-untyped-call]
        ("client_options", ClientOptions(client_cert_source=lambda: (b"", b""))),
    ],
)
def test_what_cannot_reach_the_workers_is_refused(argument: str, value: Any) -> None:
    """It is found when the sink is built, with the argument's name, and not deep in a runner's pickler."""
    with pytest.raises(InvalidSettingError, match=f"^{argument} must be picklable"):
        make(**{argument: value})


LEAKS: list[dict[str, Any]] = [
    {"credentials": SECRET},
    {"credentials": {"private_key": SECRET}},
    {"client_options": SECRET},
    {"client_options": [SECRET]},
    {"client_options": {1: SECRET}},
    {"client_options": {"api_key": SECRET, "nope": SECRET}},
    {"client_options": {"api_key": SECRET, "credentials_file": SECRET}},
    {"client_options": {"api_key": SECRET}, "credentials": user()},
    {"client_options": ClientOptions(api_key=SECRET), "credentials": user()},
    {"client_options": ClientOptions(api_key=SECRET, client_cert_source=lambda: (b"", b""))},
]


@pytest.mark.parametrize("arguments", LEAKS, ids="-".join)
def test_no_error_gives_a_secret_away(arguments: dict[str, Any]) -> None:
    """A launch that fails can be shown to a colleague: text, repr and causes hold no key and no token."""
    with pytest.raises(InvalidSettingError) as raised:
        make(**arguments)
    shown = "".join(traceback.format_exception(raised.value))
    assert SECRET not in shown + str(raised.value) + repr(raised.value) + repr(vars(raised.value))


def test_the_repr_gives_no_secret_away() -> None:
    """A configuration can be logged and shown in a debugger."""
    for config in (make(credentials=user()), make(client_options={"api_key": SECRET})):
        assert SECRET not in repr(config)
        assert TOPIC in repr(config)
