"""Looks up all packages that the project needs in an advisory database; fails if one could not be looked up.

Run by `make audit`. pip-audit on its own skips what it cannot check, such as a package from another index; a
skipped package is a failure here, and so is a database that cannot be reached.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from importlib.metadata import distributions
from typing import Any, NamedTuple

# What is audited is what is installed; the project itself is in no database.
_OURS = "beam-hedge"
_SECONDS = 600


class Findings(NamedTuple):
    """What an audit has found.

    Attributes:
        checked: The packages that were looked up.
        unchecked: Those that were not, and why.
        known: What is known of packages with vulnerabilities.
    """

    checked: set[str]
    unchecked: dict[str, str]
    known: list[str]


def normal(name: str) -> str:
    """Returns a package's name as indexes compare it."""
    return name.lower().replace("_", "-").replace(".", "-")


def judge(report: dict[str, Any], installed: set[str]) -> Findings:
    """Reads a report.

    Args:
        report: pip-audit's, in its JSON format.
        installed: The names of all packages that should be in it.

    Returns:
        What it says; packages that it does not mention are unchecked.
    """
    checked: set[str] = set()
    unchecked: dict[str, str] = {}
    known: list[str] = []
    for package in report.get("dependencies", ()):
        name = normal(package["name"])
        if "skip_reason" in package:
            unchecked[name] = package["skip_reason"]
            continue
        checked.add(name)
        for found in package.get("vulns", ()):
            mended = ", ".join(found.get("fix_versions", ())) or "no release"
            known.append(f"{name} {package['version']}: {found['id']}, mended in {mended}")
    for name in installed - checked - set(unchecked):
        unchecked[name] = "the audit does not mention it"
    unchecked.pop(_OURS, None)
    return Findings(checked, unchecked, known)


def main(arguments: list[str] | None = None) -> int:
    """Runs the audit; returns the program's status.

    Args:
        arguments: The command line. Default: that of the process.

    Returns:
        0: all packages were looked up, and nothing is known of them. 1: otherwise.
    """
    parser = argparse.ArgumentParser(prog="python tools/audit.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--service", choices=("pypi", "osv"), default="osv", help="the advisory database")
    service = parser.parse_args(arguments).service
    installed = {normal(str(found.metadata["Name"])) for found in distributions()}
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip_audit",
            "--format=json",
            "--progress-spinner=off",
            f"--vulnerability-service={service}",
        ],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    try:
        findings = judge(json.loads(ended.stdout), installed)
    except json.JSONDecodeError:
        said = ended.stderr.strip().splitlines() or ["nothing"]
        print(f"Nothing was checked: pip-audit ended with status {ended.returncode}. It said: {said[-1]}")
        return 1
    for name, reason in sorted(findings.unchecked.items()):
        print(f"not checked: {name}: {reason}")
    for line in findings.known:
        print(f"known: {line}")
    print(
        f"{len(findings.checked)} packages checked, {len(findings.unchecked)} not checked, "
        f"{len(findings.known)} advisories."
    )
    return 1 if findings.unchecked or findings.known or not findings.checked else 0


if __name__ == "__main__":
    sys.exit(main())
