"""Installing with uv finds packages where pip is told to look."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tools.install import main, uv_environment

if TYPE_CHECKING:
    import pytest


def test_without_configuration_nothing_is_set() -> None:
    """Users who configured nothing get uv's defaults, which are pip's."""
    assert uv_environment([]) == {}


def test_indexes_are_translated() -> None:
    """Users behind a mirror install from it, and the best version of several indexes wins as with pip."""
    config = [
        "global.index-url='https://mirror.example/simple'",
        "global.extra-index-url='https://a.example/simple\\nhttps://b.example/simple'",
        "global.trusted-host='mirror.example'",
        "install.find-links='/wheels /more'",
        ":env:.cert='/etc/ca.pem'",
    ]
    assert uv_environment(config) == {
        "UV_DEFAULT_INDEX": "https://mirror.example/simple",
        "UV_INDEX": "https://a.example/simple https://b.example/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_INSECURE_HOST": "mirror.example",
        "UV_FIND_LINKS": "/wheels,/more",
        "SSL_CERT_FILE": "/etc/ca.pem",
    }


def test_the_environment_wins_over_files() -> None:
    """Users can override a configured index for one run, as with pip, which lists the environment last."""
    config = ["global.index-url='https://file.example'", ":env:.index-url='https://env.example'"]
    assert uv_environment(config) == {"UV_DEFAULT_INDEX": "https://env.example"}


def test_a_setting_that_uv_lacks_leaves_the_work_to_pip() -> None:
    """A configuration that cannot be translated is respected by not using uv."""
    assert uv_environment(["install.no-binary='grpcio'"]) is None
    assert uv_environment(["global.timeout='60'", "download.no-binary='grpcio'"]) == {}


def test_it_refuses_to_install_outside_a_virtual_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody's system Python is changed by mistake."""
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setattr(sys, "argv", ["install.py", "dev"])
    assert main() != 0
    assert "virtual environment" in capsys.readouterr().err
