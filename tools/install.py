"""Install the project, in place and with extras, into the virtual environment whose interpreter runs this.

Usage: .venv/bin/python tools/install.py demo,dev

Apache Beam brings some 120 packages. uv installs them several times as fast as pip, so uv is tried first. It is
fetched through pip, so wherever pip finds packages, so does this. uv does not read pip's configuration: it is
translated, and where that is not possible, or uv fails, pip does the work.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parent.parent

# pip's name of a setting -> uv's variable, and what separates several values in it.
_TRANSLATED = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "constraint": ("UV_CONSTRAINT", " "),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", " "),
    "proxy": ("ALL_PROXY", " "),
}
# Settings that change neither where packages come from nor which are taken.
_HARMLESS = {
    "break-system-packages",
    "cache-dir",
    "default-timeout",
    "disable-pip-version-check",
    "no-cache-dir",
    "no-color",
    "no-input",
    "no-warn-script-location",
    "prefer-binary",
    "progress-bar",
    "quiet",
    "require-virtualenv",
    "retries",
    "root-user-action",
    "timeout",
}


def uv_environment(pip_config: Iterable[str]) -> dict[str, str] | None:
    """Translate the lines of `pip config list` to variables that uv reads.

    Args:
        pip_config: Lines such as `global.index-url='https://example.org/simple'`, weakest first.

    Returns:
        The variables, or None if a setting has no translation, so that only pip can respect it.
    """
    variables: dict[str, str] = {}
    for line in pip_config:
        name, _, quoted = line.partition("=")
        section, _, key = name.strip().rpartition(".")
        if section not in {"global", "install", ":env:"} or key in _HARMLESS:
            continue
        if key not in _TRANSLATED:
            return None
        variable, separator = _TRANSLATED[key]
        variables[variable] = separator.join(str(ast.literal_eval(quoted)).split())
    if "UV_INDEX" in variables:
        # pip takes the best version of all indexes; uv by default stops at the first index that has the name.
        variables["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return variables


def _pip(*arguments: str) -> bool:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, check=False, cwd=ROOT).returncode == 0


def _install_with_uv(requirement: str) -> bool:
    listing = [sys.executable, "-m", "pip", "config", "list"]
    config = subprocess.run(listing, check=True, capture_output=True, text=True).stdout.splitlines()
    variables = uv_environment(config)
    # Only a ready-made uv: building one takes a Rust compiler and minutes.
    if variables is None or not _pip("install", "--quiet", "--only-binary=:all:", "uv"):
        return False
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", sys.executable]
    # What the user set for uv itself wins over what is translated.
    environment = {**variables, **os.environ}
    return subprocess.run([*command, "-e", requirement], check=False, cwd=ROOT, env=environment).returncode == 0


def _install_with_pip(requirement: str) -> bool:
    # An old pip still works, only slowly, so it does not matter if this step fails.
    _pip("install", "--quiet", "--upgrade", "pip")
    # Python compiles what it imports at the first run, which is a small part of what is installed.
    return _pip("install", "--quiet", "--prefer-binary", "--no-compile", "-e", requirement)


def main() -> int:
    """Install `.[extras]`, extras being the only argument; the exit status is 0 if that worked."""
    if sys.prefix == sys.base_prefix:
        sys.stderr.write("tools/install.py: run it with the interpreter of a virtual environment\n")
        return 2
    requirement = f".[{sys.argv[1]}]"
    if _install_with_uv(requirement):
        return 0
    sys.stderr.write("uv could not do it: installing with pip, which takes longer\n")
    return 0 if _install_with_pip(requirement) else 1


if __name__ == "__main__":
    sys.exit(main())
