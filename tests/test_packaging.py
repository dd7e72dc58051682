"""What users get when they install the package, and what happens when they import it."""

from __future__ import annotations

import email
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import beam_hedge

if TYPE_CHECKING:
    from email.message import Message

ROOT = Path(__file__).resolve().parent.parent
NEEDED = {"apache-beam", "google-api-core", "google-cloud-pubsub", "grpcio", "opentelemetry-api", "protobuf"}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of what a package is built from, for building to write into."""
    copy = tmp_path_factory.mktemp("source")
    for name in ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "CHANGELOG.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    for name in ("beam_hedge", "pipelines"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.Path:
    """Return the built wheel."""
    target = tmp_path_factory.mktemp("wheel")
    # Everything that it is built with is installed: no test downloads anything.
    command = ["pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(target), "."]
    built = subprocess.run(
        [sys.executable, "-m", *command], cwd=source, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    [path] = target.glob("*.whl")
    return zipfile.Path(path)


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.Path) -> Message:
    """Return the wheel's metadata."""
    [folder] = [entry for entry in wheel.iterdir() if entry.name.endswith(".dist-info")]
    return email.message_from_string((folder / "METADATA").read_text(encoding="utf-8"))


def _modules() -> set[str]:
    paths = [path for name in ("beam_hedge", "pipelines") for path in (ROOT / name).rglob("*.py")]
    return {str(path.relative_to(ROOT)) for path in paths}


def test_the_wheel_holds_the_whole_package_and_nothing_else(wheel: zipfile.Path) -> None:
    """An installed package can be imported, type-checked and run, and brings no tests or demo along."""
    names = {name for name in wheel.root.namelist() if ".dist-info/" not in name and not name.endswith("/")}
    assert names == _modules() | {"beam_hedge/py.typed"}


def test_the_license_comes_along(wheel: zipfile.Path, metadata: Message) -> None:
    """Whoever gets the package gets its terms."""
    assert "Apache-2.0" in {metadata["License"], metadata["License-Expression"]}
    assert any(name.endswith("/LICENSE") for name in wheel.root.namelist())


def test_users_install_only_what_publishing_needs(metadata: Message) -> None:
    """`pip install beam-hedge` brings no plots, data sets, benchmarks or test tools."""
    always, optional = set[str](), set[str]()
    for requirement in metadata.get_all("Requires-Dist", []):
        [name] = re.findall(r"^[\w.-]+", requirement)
        (optional if "extra ==" in requirement else always).add(name.lower().replace("_", "-"))
    assert always == NEEDED
    assert {"matplotlib", "vega-datasets", "pytest", "hypothesis", "ruff", "mypy"} <= optional


def test_one_version_is_told_everywhere(metadata: Message) -> None:
    """The version that users see at run time is the one that they installed, and the changelog knows it."""
    assert metadata["Version"] == beam_hedge.__version__
    assert metadata["Requires-Python"] == ">=3.10"
    assert beam_hedge.__version__ in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_beam_can_stage_the_package(source: Path, tmp_path: Path) -> None:
    """`--setup_file=setup.py` works: Beam has workers install the source distribution that this makes."""
    command = [sys.executable, "setup.py", "-q", "sdist", "--formats=gztar", "--dist-dir", str(tmp_path)]
    built = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    [path] = tmp_path.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"setup.py", "pyproject.toml", "README.md", "LICENSE", "beam_hedge/py.typed", *_modules()}
    assert wanted <= names


def test_importing_has_no_side_effects() -> None:
    """Importing the package starts no thread or process and contacts nothing; only publishing does."""
    program = """
import sys, threading
seen = []
watched = {"socket.connect", "socket.getaddrinfo", "socket.bind", "subprocess.Popen", "os.fork"}
sys.addaudithook(lambda event, arguments: seen.append((event, arguments)) if event in watched else None)
import apache_beam, google.cloud.pubsub_v1
seen.clear()
before = set(threading.enumerate())
import beam_hedge
print(set(threading.enumerate()) - before, seen)
"""
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "set() []"
