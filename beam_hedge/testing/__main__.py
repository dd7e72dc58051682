"""Starts an embedded Pub/Sub for any client: `python -m beam_hedge.testing --port 8085 --profile tail`."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from typing import TYPE_CHECKING, TypeVar

from beam_hedge.testing.limits import check_name
from beam_hedge.testing.listener import MAX_PORT
from beam_hedge.testing.profile import PROFILES, LatencyProfile
from beam_hedge.testing.refusal import RefusedError
from beam_hedge.testing.server import LocalPubSub

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_T = TypeVar("_T")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a server until SIGINT or SIGTERM, then prints its ledger.

    Args:
        arguments: The command line without the program's name; default: that of the process.

    Returns:
        The exit status of the process: 0, or 1 if the server could not start.
    """
    options = _parser().parse_args(arguments)
    server = LocalPubSub(
        options.port,
        host=options.host,
        profile=options.profile,
        seed=options.seed,
        store=options.store,
        record=0,
        keep_messages=not options.count_only,
        auto_create_topics=options.auto_create_topics,
    )
    try:
        for topic in options.topic:
            server.create_topic(topic)
        for name, topic in options.subscription:
            server.create_subscription(name, topic)
        server.start()
    except (RefusedError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    sys.stdout.write(f"export PUBSUB_EMULATOR_HOST={server.endpoint}\n")
    # At once, also into a pipe: whoever started the server reads this line to know where it is.
    sys.stdout.flush()
    stop.wait()
    server.stop()
    sys.stdout.write(f"{server.ledger()}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    # No abbreviations: a misspelt flag must not pass for another one.
    parser = argparse.ArgumentParser(
        prog="python -m beam_hedge.testing",
        description="Runs an embedded Pub/Sub until it is interrupted, then prints what it saw.",
        allow_abbrev=False,
    )
    parser.add_argument("--port", type=_checked(_port), default=8085, help="default 8085; 0 takes a free one")
    parser.add_argument("--host", default="127.0.0.1", help="default 127.0.0.1: only this machine reaches it")
    parser.add_argument(
        "--profile",
        type=_checked(LatencyProfile.parse),
        default=PROFILES["none"],
        help=f"latencies of publish calls: {', '.join(PROFILES)}, or parts such as 0.95:0.005,0.04:0.3,0.01:4 "
        "(probability, colon, seconds); default none",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the latencies; default 0")
    parser.add_argument(
        "--store",
        choices=("arrival", "answer"),
        default="arrival",
        help="when messages are stored; default arrival",
    )
    parser.add_argument(
        "--auto-create-topics",
        action="store_true",
        help="make unknown topics when somebody publishes to them",
    )
    parser.add_argument(
        "--count-only",
        action="store_true",
        help="keep no messages, for load; there are no subscriptions then",
    )
    parser.add_argument(
        "--topic",
        type=_checked(_topic),
        action="append",
        default=[],
        metavar="NAME",
        help="make a topic; repeatable",
    )
    parser.add_argument(
        "--subscription",
        type=_checked(_subscription),
        action="append",
        default=[],
        metavar="NAME=TOPIC",
        help="make a subscription to a topic; repeatable",
    )
    return parser


def _checked(parse: Callable[[str], _T]) -> Callable[[str], _T]:
    def checked(text: str) -> _T:
        try:
            return parse(text)
        except RefusedError as refusal:
            raise argparse.ArgumentTypeError(refusal.details) from None
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None

    return checked


def _port(text: str) -> int:
    if not (text.isdecimal() and int(text) <= MAX_PORT):
        raise ValueError(f"expected a whole number from 0 to {MAX_PORT}")
    return int(text)


def _topic(text: str) -> str:
    check_name("topics", text)
    return text


def _subscription(text: str) -> tuple[str, str]:
    name, _, topic = text.partition("=")
    check_name("subscriptions", name)
    check_name("topics", topic)
    return name, topic


if __name__ == "__main__":
    sys.exit(main())
