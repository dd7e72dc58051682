"""`make audit` says which packages have known faults, and never that all is well because it could not look."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

from tools import audit

if TYPE_CHECKING:
    import pytest

_FOUND: dict[str, Any] = {"id": "ADVISORY-1", "fix_versions": ["2.0"]}


def _package(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "version": "1.0", "vulns": [], **more}


def _run(monkeypatch: pytest.MonkeyPatch, printed: str, installed: set[str], status: int = 0) -> int:
    ended = subprocess.CompletedProcess([], status, printed, "a reason")
    monkeypatch.setattr(subprocess, "run", lambda *_args, **_more: ended)
    monkeypatch.setattr(audit, "distributions", lambda: [_Installed(name) for name in installed])
    return audit.main([])


class _Installed:
    def __init__(self, name: str) -> None:
        self.metadata = {"Name": name}


def test_a_package_with_a_known_fault_is_named_with_what_mends_it() -> None:
    """Who reads the audit knows what to update, and to what."""
    findings = audit.judge({"dependencies": [_package("Some.Package", vulns=[_FOUND])]}, {"some-package"})
    assert findings.known == ["some-package 1.0: ADVISORY-1, mended in 2.0"]
    assert findings.unchecked == {}


def test_a_package_that_was_skipped_or_left_out_is_unchecked() -> None:
    """What nobody looked up is not taken for good; the project itself is in no database."""
    report = {"dependencies": [_package("good"), {"name": "odd", "skip_reason": "not found"}]}
    findings = audit.judge(report, {"good", "odd", "forgotten", "beam-hedge"})
    assert findings.checked == {"good"}
    assert findings.unchecked == {"odd": "not found", "forgotten": "the audit does not mention it"}


def test_only_a_whole_and_clean_audit_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command's status can be trusted: unchecked packages, advisories and no answer at all are failures."""
    good = '{"dependencies": [{"name": "good", "version": "1.0", "vulns": []}]}'
    assert _run(monkeypatch, good, {"good", "beam-hedge"}) == 0
    assert _run(monkeypatch, good, {"good", "other"}) == 1
    assert _run(monkeypatch, good.replace("[]", '[{"id": "A", "fix_versions": []}]'), {"good"}, 1) == 1
    assert _run(monkeypatch, '{"dependencies": []}', set()) == 1


def test_an_audit_that_reached_no_database_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a network the command fails, with the reason."""
    assert _run(monkeypatch, "", {"good"}, 1) == 1
    assert capsys.readouterr().out == "Nothing was checked: pip-audit ended with status 1. It said: a reason\n"
