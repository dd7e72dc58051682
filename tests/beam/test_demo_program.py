"""How the demonstration starts and ends programs, and what it does with signals."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from demo import program
from demo.program import ProgramFailedError, run_program
from demo.stop import StoppedError, stop_on_signals

if TYPE_CHECKING:
    from pathlib import Path


def never() -> None:
    """Is called while a program runs, and does nothing."""


def test_a_program_gives_its_last_line(tmp_path: Path) -> None:
    """The demonstration shows what the pipeline itself says at its end."""
    code = "import os; print('first'); print(os.environ['COLOR'])"
    said = run_program(
        ["-c", code], tmp_path / "log", environment={"COLOR": "blue"}, stop=threading.Event(), tick=never
    )
    assert said == "blue"


def test_a_program_finds_the_pipelines_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demonstration works wherever it is started, and paths mean what they mean there."""
    monkeypatch.chdir(tmp_path)
    code = "import os, pipelines; print(os.getcwd())"
    said = run_program(["-c", code], tmp_path / "log", environment={}, stop=threading.Event(), tick=never)
    assert said == str(tmp_path)


def test_a_program_that_fails_is_quoted(tmp_path: Path) -> None:
    """Who sees the demonstration fail sees why."""
    with pytest.raises(ProgramFailedError, match=r"(?s)status 3; see .*log.*\nno luck"):
        run_program(
            ["-c", "import sys; print('no luck'); sys.exit(3)"],
            tmp_path / "log",
            environment={},
            stop=threading.Event(),
            tick=never,
        )


@pytest.mark.parametrize("deaf", [False, True])
def test_a_program_ends_with_the_demonstration(
    deaf: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ctrl-C leaves no process behind: it is asked to end, and ended if it does not listen."""
    monkeypatch.setattr(program, "_TERM_S", 0.1 if deaf else 20)
    answer = "signal.SIG_IGN" if deaf else "lambda *_: sys.exit(print('ended in order'))"
    code = (
        f"import os, signal, sys, time; signal.signal(signal.SIGTERM, {answer});"
        "print(os.getpid(), flush=True); time.sleep(100)"
    )
    log, stop = tmp_path / "log", threading.Event()

    def stop_when_it_runs() -> None:
        if log.read_text(encoding="utf-8").endswith("\n"):
            stop.set()

    with pytest.raises(StoppedError):
        run_program(["-c", code], log, environment={}, stop=stop, tick=stop_when_it_runs)
    number, *last_words = log.read_text(encoding="utf-8").splitlines()
    with pytest.raises(ProcessLookupError):
        os.kill(int(number), 0)
    assert last_words == ([] if deaf else ["ended in order"])


def test_a_program_ends_when_the_demonstration_breaks(tmp_path: Path) -> None:
    """An error while a program runs leaves no process behind either."""
    log = tmp_path / "log"

    def break_when_it_runs() -> None:
        if log.read_text(encoding="utf-8").endswith("\n"):
            raise RuntimeError("broken")

    code = "import os, time; print(os.getpid(), flush=True); time.sleep(100)"
    with pytest.raises(RuntimeError, match="broken"):
        run_program(["-c", code], log, environment={}, stop=threading.Event(), tick=break_when_it_runs)
    with pytest.raises(ProcessLookupError):
        os.kill(int(log.read_text(encoding="utf-8")), 0)


@pytest.mark.skipif(sys.platform == "win32", reason="signals cannot be sent to oneself there")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_signals_ask_for_a_stop(name: str) -> None:
    """Ctrl-C, `kill` and a closed terminal all end the demonstration in order; afterwards all is as it was."""
    number = getattr(signal, name)
    before = signal.getsignal(number)
    with stop_on_signals() as stop:
        os.kill(os.getpid(), number)
        assert stop.wait(20)
    assert signal.getsignal(number) == before
