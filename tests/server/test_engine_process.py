"""What becomes of the engine when its process forks or ends; each test runs a program of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PRELUDE = """
import os, signal, sys, threading, time
from beam_hedge import *
from beam_hedge.testing import NEVER, LocalPubSub

TOPIC = "projects/p-test/topics/out"
server = LocalPubSub().start()
server.create_topic(TOPIC)
os.environ["PUBSUB_EMULATOR_HOST"] = server.endpoint
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    """Runs a program after the prelude, and returns how it ended."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GRPC_")}
    return subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", PRELUDE + textwrap.dedent(program)],
        env={**environment, "PYTHONPATH": str(ROOT), "GRPC_VERBOSITY": "NONE"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_forked_child_gets_a_clear_error_and_the_parent_goes_on() -> None:
    """A child of `fork` cannot use gRPC: it is told so within seconds, on every way to publish."""
    ended = run("""
        from beam_hedge import lease

        publisher = HedgingPublisher(TOPIC)
        publisher.publish([b"before"]).result(10)
        config = WriteToPubSubHedged(TOPIC)._config
        held = lease.acquire(config)
        ways = {
            "publish": lambda: publisher.publish([b"child"]),
            "close": publisher.close,
            "new": lambda: HedgingPublisher(TOPIC),
            "lease": lambda: lease.acquire(config),
            "held": lambda: held.publisher.publish([b"child"]),
        }
        child = os.fork()
        if child == 0:
            signal.alarm(10)
            for name, way in ways.items():
                try:
                    way()
                    print(name, "did not raise")
                except ForkedProcessError as error:
                    print(name, "spawn" in str(error))
            sys.stdout.flush()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print("child", status)
        publisher.publish([b"after"]).result(10)
        publisher.close()
        held.release()
        print([message.data for message in server.messages(TOPIC)])
        server.stop()
    """)
    assert ended.stdout.split("\n")[:-1] == [
        "publish True",
        "close True",
        "new True",
        "lease True",
        "held True",
        "child 0",
        "[b'before', b'after']",
    ], ended.stderr
    assert ended.returncode == 0


def test_a_child_that_was_forked_before_the_first_publisher_works() -> None:
    """Fork servers and pre-forking workers that publish only in the child are fine."""
    ended = run("""
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            with HedgingPublisher(TOPIC) as publisher:
                print(len(publisher.publish([b"child"]).result(10).message_ids))
            sys.stdout.flush()
            os._exit(0)
        print("child", os.waitpid(child, 0)[1])
        with HedgingPublisher(TOPIC) as publisher:
            publisher.publish([b"parent"]).result(10)
        print([message.data for message in server.messages(TOPIC)])
        server.stop()
    """)
    assert ended.stdout.split("\n")[:-1] == ["1", "child 0", "[b'child', b'parent']"], ended.stderr


@pytest.mark.parametrize("ending", ["sys.exit(0)", "del publisher, futures"], ids=["exit", "forgotten"])
def test_an_interpreter_with_requests_out_ends_promptly_and_quietly(ending: str) -> None:
    """A program that ends, closed publisher or not, ends at once, with status 0 and nothing on stderr."""
    ended = run(f"""
        server.script = NEVER
        publisher = HedgingPublisher(TOPIC, HedgingSettings(hedge_delay=0.1, initial_tokens=20))
        futures = [publisher.publish([b"x"]) for _ in range(5)]
        server.wait_for(lambda ledger: ledger.hedges >= 5)
        import atexit
        started = time.monotonic()
        atexit.register(lambda: print("took", time.monotonic() - started < 10))
        {ending}
    """)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "took True\n"
