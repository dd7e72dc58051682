"""Decides whether the emulator tests start Google's Pub/Sub emulator, are skipped, or fail."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

_COMPONENT = Path("platform", "pubsub-emulator")


@dataclass(frozen=True)
class Found:
    """What this machine has.

    Attributes:
        component: The emulator's folder in the Google Cloud SDK, if the SDK has that component.
        jar: The emulator in that folder.
        java: The Java runtime that would run it.
    """

    component: Path | None
    jar: Path | None
    java: str | None


@dataclass(frozen=True)
class Plan:
    """What to do about the emulator tests.

    Attributes:
        action: "start" the emulator, "skip" the tests, or "fail" them.
        reason: Why, for the person who reads the test report; empty when the emulator starts.
    """

    action: Literal["start", "skip", "fail"]
    reason: str = ""


def look_around(environment: Mapping[str, str] = os.environ) -> Found:
    """Look for the emulator without asking gcloud, which takes seconds to answer.

    Args:
        environment: Read for `CLOUDSDK_ROOT_DIR`, `JAVA_HOME` and `PATH`.

    Returns:
        What there is.
    """
    components = [root / _COMPONENT for root in _sdk_roots(environment)]
    component = next((folder for folder in components if folder.is_dir()), None)
    jars = sorted(component.glob("lib/cloud-pubsub-emulator-*-all.jar")) if component else []
    return Found(component, jars[-1] if jars else None, _java(environment))


def decide(found: Found, *, ci: bool) -> Plan:
    """Say what happens to the emulator tests.

    On a person's machine a part that is missing skips the tests. In CI that would hide them for good, so there
    an emulator that is installed has to run; only a machine without the component skips.

    Args:
        found: What the machine has.
        ci: Whether this is a CI run.

    Returns:
        The plan.
    """
    if found.component is None:
        return Plan("skip", "no Pub/Sub emulator here (gcloud components install pubsub-emulator)")
    action: Literal["skip", "fail"] = "fail" if ci else "skip"
    if found.jar is None:
        return Plan(action, f"no cloud-pubsub-emulator-*-all.jar in {found.component / 'lib'}")
    if found.java is None:
        return Plan(action, f"{found.jar.name} is installed, but there is no java to run it")
    return Plan("start")


def in_ci(environment: Mapping[str, str] = os.environ) -> bool:
    """Say whether this is a CI run: CI services set `CI` to `true` (some to `1`)."""
    return environment.get("CI", "").lower() in {"1", "true"}


def _sdk_roots(environment: Mapping[str, str]) -> list[Path]:
    """List where the SDK may be: where gcloud was told, and around the gcloud that the PATH leads to."""
    roots = []
    if told := environment.get("CLOUDSDK_ROOT_DIR"):
        roots.append(Path(told))
    if gcloud := shutil.which("gcloud", path=environment.get("PATH")):
        roots.append(Path(gcloud).resolve().parent.parent)
    return roots


def _java(environment: Mapping[str, str]) -> str | None:
    if home := environment.get("JAVA_HOME"):
        return shutil.which("java", path=str(Path(home, "bin")))
    return shutil.which("java", path=environment.get("PATH"))
