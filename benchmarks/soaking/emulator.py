"""Google's Pub/Sub emulator as a child process."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_JAR = "platform/pubsub-emulator/lib/cloud-pubsub-emulator-*-all.jar"
_START_SECONDS = 60.0
_END_SECONDS = 10.0
_PAUSE = 0.2


@contextlib.contextmanager
def emulator_process() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Starts the emulator on a free port, and ends it with the block.

    Should this process be killed, a shell that waits at the end of a pipe from it ends the emulator.

    Yields:
        The process, which leads a group of its own, and its port.

    Raises:
        FileNotFoundError: There is none on this machine, or no Java.
        TimeoutError: It does not listen.
    """
    java = shutil.which("java")
    if java is None:
        raise FileNotFoundError("the emulator needs java, and there is none on the PATH")
    port = _free_port()
    command = [java, "-jar", str(_find_jar()), "--host=127.0.0.1", f"--port={port}"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, **quiet)  # type: ignore[call-overload]
    watch = ["/bin/sh", "-c", f"read -r _; kill -s KILL -- -{process.pid}"]
    watchdog = subprocess.Popen(watch, stdin=subprocess.PIPE, **quiet)  # type: ignore[call-overload]
    try:
        _wait_until_listening(process, port)
        yield process, port
    finally:
        watchdog.kill()
        watchdog.communicate()
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _find_jar() -> Path:
    roots = [Path(os.environ["CLOUDSDK_ROOT_DIR"])] if "CLOUDSDK_ROOT_DIR" in os.environ else []
    if gcloud := shutil.which("gcloud"):
        roots.append(Path(gcloud).resolve().parent.parent)
    jars = [jar for root in roots for jar in sorted(root.glob(_JAR))]
    if not jars:
        raise FileNotFoundError("no Pub/Sub emulator here (gcloud components install pubsub-emulator)")
    return jars[-1]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_listening(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(_PAUSE)
    raise TimeoutError("the emulator ended at once, or does not listen")
