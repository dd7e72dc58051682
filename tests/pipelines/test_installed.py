"""The package that workers get, installed as they install it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from apache_beam.runners.portability.stager import Stager

from tests.beam.relaying import NAME, feed, numbered, streaming_server, wait_for_messages
from tests.pipelines.programs import ROOT, figures, started
from tests.server.serving import PATIENCE, TOPIC

if TYPE_CHECKING:
    from pathlib import Path

_FILES = ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "CHANGELOG.md", "LICENSE")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the package, built by Beam for `--setup_file` and installed as on a worker."""
    source, built, target = (tmp_path_factory.mktemp(name) for name in ("source", "built", "target"))
    for name in _FILES:
        shutil.copy(ROOT / name, source)
    for name in ("beam_hedge", "pipelines"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    package = Stager._build_setup_package(str(source / "setup.py"), str(built))
    # What it needs is there already: no test downloads anything.
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--no-compile", "-q", "--target", str(target)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, package], check=True, capture_output=True)
    return target


def test_the_file_pipeline_runs_from_an_installed_package(installed: Path, tmp_path: Path) -> None:
    """Who installed the package needs no clone to publish files."""
    (tmp_path / "lines").write_bytes(b"a\nb\n")
    flags = [f"--input={tmp_path / 'lines'}", f"--topic={TOPIC}", "--runner=FnApiRunner"]
    with (
        streaming_server() as server,
        started("pipelines.text_to_pubsub", server.endpoint, *flags, path=installed) as program,
    ):
        status, said, complained = program.end(PATIENCE * 3)
    assert status == 0, complained
    assert figures(said)["messages published in"] == 2


def test_the_relay_runs_from_an_installed_package(installed: Path) -> None:
    """Who installed the package needs no clone to relay messages."""
    flags = [f"--input_subscription={NAME}", f"--topic={TOPIC}"]
    with streaming_server() as server:
        feed(numbered(5))
        with started("pipelines.pubsub_to_pubsub", server.endpoint, *flags, path=installed) as program:
            wait_for_messages(server, 5)
            program.interrupt()
            status, said, _ = program.end(PATIENCE)
    assert status == 130
    assert figures(said)["messages published in"] == 5
