"""When the emulator tests run, are skipped, or fail: a machine that has the emulator never skips them in CI."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.emulator.plan import Found, decide, in_ci, look_around

COMPONENT = Path("/sdk/platform/pubsub-emulator")
JAR = COMPONENT / "lib" / "cloud-pubsub-emulator-1.2.3-all.jar"


@pytest.mark.parametrize(
    ("found", "ci", "action"),
    [
        (Found(COMPONENT, JAR, "/usr/bin/java"), True, "start"),
        (Found(COMPONENT, JAR, "/usr/bin/java"), False, "start"),
        (Found(COMPONENT, JAR, None), True, "fail"),
        (Found(COMPONENT, JAR, None), False, "skip"),
        (Found(COMPONENT, None, "/usr/bin/java"), True, "fail"),
        (Found(COMPONENT, None, "/usr/bin/java"), False, "skip"),
        (Found(None, None, "/usr/bin/java"), True, "skip"),
        (Found(None, None, "/usr/bin/java"), False, "skip"),
    ],
)
def test_an_installed_emulator_must_run_in_ci(found: Found, ci: bool, action: str) -> None:
    """A green CI run on a machine with the emulator means that the tests against it ran."""
    plan = decide(found, ci=ci)
    assert plan.action == action
    assert bool(plan.reason) == (action != "start")


@pytest.mark.parametrize(
    ("value", "expected"), [("true", True), ("1", True), ("TRUE", True), ("false", False), ("", False)]
)
def test_ci_is_told_by_the_environment(value: str, expected: bool) -> None:
    """Nobody gets CI's strictness who has not asked for it, and CI always does."""
    assert in_ci({"CI": value}) is expected
    assert in_ci({}) is False


def _executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def _sdk(root: Path) -> Path:
    jar = root / "platform" / "pubsub-emulator" / "lib" / "cloud-pubsub-emulator-1.2.3-all.jar"
    jar.parent.mkdir(parents=True)
    jar.touch()
    return jar


def test_the_emulator_is_found_around_a_linked_gcloud(tmp_path: Path) -> None:
    """Users whose gcloud is a link, as packages install it, need no setting."""
    jar = _sdk(tmp_path / "sdk")
    gcloud = _executable(tmp_path / "sdk" / "bin" / "gcloud")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gcloud").symlink_to(gcloud)
    java = _executable(tmp_path / "bin" / "java")
    found = look_around({"PATH": str(tmp_path / "bin")})
    assert found == Found(jar.parent.parent, jar, str(java))


def test_the_emulator_is_found_where_the_environment_says(tmp_path: Path) -> None:
    """Users can name their SDK and their Java instead of changing the PATH."""
    jar = _sdk(tmp_path / "sdk")
    java = _executable(tmp_path / "jdk" / "bin" / "java")
    environment = {
        "CLOUDSDK_ROOT_DIR": str(tmp_path / "sdk"),
        "JAVA_HOME": str(tmp_path / "jdk"),
        "PATH": str(tmp_path / "nothing"),
    }
    assert look_around(environment) == Found(jar.parent.parent, jar, str(java))


def test_a_machine_without_it_is_told_apart_from_a_broken_one(tmp_path: Path) -> None:
    """An SDK without the emulator skips; an emulator folder without its jar is an installation to mend."""
    _executable(tmp_path / "bin" / "gcloud")
    environment = {"PATH": str(tmp_path / "bin")}
    assert look_around(environment) == Found(None, None, None)
    component = tmp_path / "platform" / "pubsub-emulator"
    component.mkdir(parents=True)
    assert look_around(environment) == Found(component, None, None)
