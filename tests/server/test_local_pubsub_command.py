"""`python -m beam_hedge.testing`: a server for any client, from a shell."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent import futures
from typing import Any, TextIO

import grpc
import pytest

from beam_hedge.testing import LocalPubSub
from beam_hedge.testing.__main__ import main
from tests.server.conftest import TOPIC, request

PATIENCE = 60
NAME = "projects/p-test/subscriptions/s"


OPTIONS = ["--port", "0", "--profile", "0.5:0,0.5:0.01", "--seed", "3", "--store", "answer"]
OPTIONS += ["--auto-create-topics", "--topic", TOPIC, "--subscription", f"{NAME}={TOPIC}"]
LEDGER = "requests 2 (hedges 0), answered 2, failed 0, cancelled 0, open 0; messages stored 3\n"


def use(line: str) -> None:
    """Publishes to the server that a line such as "export PUBSUB_EMULATOR_HOST=127.0.0.1:8085" tells."""
    assert line.startswith("export PUBSUB_EMULATOR_HOST=127.0.0.1:")
    with grpc.insecure_channel(line.strip().partition("=")[2]) as channel:
        publish: Any = channel.unary_unary("/google.pubsub.v1.Publisher/Publish")
        publish(request(b"a", b"b"), timeout=PATIENCE, wait_for_ready=True)
        publish(request(b"c", topic="projects/p-test/topics/other"), timeout=PATIENCE)


def test_it_serves_until_it_is_terminated() -> None:
    """Users can start a server for any client, read where it is, stop it, and see what it got."""
    with subprocess.Popen(
        [sys.executable, "-m", "beam_hedge.testing", *OPTIONS],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        try:
            assert process.stdout is not None
            use(process.stdout.readline())
            process.terminate()
            output, _ = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert output == LEDGER
    assert process.returncode == 0


def test_an_interrupt_ends_it_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Users can end a server with Ctrl-C and still see what it got, without a traceback."""
    main_thread = threading.get_ident()
    reading, writing = os.pipe()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def interrupt(output: TextIO) -> None:
        use(output.readline())
        signal.pthread_kill(main_thread, signal.SIGINT)

    with os.fdopen(reading) as output, os.fdopen(writing, "w") as stdout, futures.ThreadPoolExecutor() as pool:
        monkeypatch.setattr(sys, "stdout", stdout)
        user = pool.submit(interrupt, output)
        try:
            assert main(OPTIONS) == 0
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        user.result(PATIENCE)
        stdout.close()
        assert output.read() == LEDGER


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--port", "65536"], "argument --port: '65536': expected a whole number from 0 to 65535"),
        (["--port", "http"], "argument --port: 'http': expected a whole number"),
        (["--profile", "tial"], "argument --profile: 'tial': expected one of none, fast, slow, tail"),
        (["--profile", "0.9:1"], "argument --profile: '0.9:1': the probabilities"),
        (["--seed", "x"], "argument --seed: invalid int value: 'x'"),
        (["--store", "later"], "argument --store: invalid choice: 'later'"),
        (["--topic", "out"], "argument --topic: invalid name 'out': expected projects/PROJECT/topics/ID"),
        (["--subscription", NAME], "argument --subscription: invalid name ''"),
        (["--subscription", f"s={TOPIC}"], "argument --subscription: invalid name 's'"),
        (["--prof", "tail"], "unrecognized arguments: --prof tail"),
    ],
)
def test_bad_arguments_name_the_flag_and_the_value(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    """Users are told which flag is wrong and why, and no server starts."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert words in capsys.readouterr().err


def test_a_taken_port_ends_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Users are told that the port is in use, in one line."""
    with LocalPubSub() as server:
        assert main(["--port", server.endpoint.rpartition(":")[2]]) == 1
        assert capsys.readouterr().err == (f"error: cannot listen on {server.endpoint}: is the port in use?\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--topic", TOPIC, "--topic", TOPIC], f"ALREADY_EXISTS: topic already exists: {TOPIC}"),
        (["--subscription", f"{NAME}={TOPIC}"], f"NOT_FOUND: topic not found: {TOPIC}"),
        (["--count-only", "--topic", TOPIC, "--subscription", f"{NAME}={TOPIC}"], "keeps no messages"),
    ],
)
def test_contradictory_arguments_end_the_command(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    """Users are told when topics and subscriptions do not fit together."""
    assert main(["--port", "0", *arguments]) == 1
    assert words in capsys.readouterr().err
