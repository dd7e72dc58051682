"""Starts the program that publishes, and reads what it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.security.client_program import PAYLOAD, TOKEN

if TYPE_CHECKING:
    from tests.security.certificates import Certificate

_ROOT = Path(__file__).parents[2]
_PATIENCE = 90
_NOT_MINE = (
    "PUBSUB_EMULATOR_HOST",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_API_USE_CLIENT_CERTIFICATE",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    # gRPC would ask a proxy for a server of this machine, too.
    "grpc_proxy",
    "https_proxy",
    "http_proxy",
)


def run_client(
    folder: Path,
    endpoint: str,
    way: str = "publisher",
    *,
    trusts: Certificate | None = None,
    shows: Certificate | None = None,
) -> dict[str, Any]:
    """Publishes to an endpoint, and checks that nothing secret was printed.

    Args:
        folder: Where files can be put.
        endpoint: Where the service is.
        way: How to publish; see `tests.security.client_program`.
        trusts: The only root that the program trusts. Default: those that come with gRPC.
        shows: Who the program says that it is. Default: nobody.

    Returns:
        What the program says.
    """
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_MINE}
    environment["PYTHONPATH"] = str(_ROOT)
    arguments = [endpoint, way]
    if trusts is not None:
        roots = folder / "roots.pem"
        roots.write_bytes(trusts.chain)
        environment["GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"] = str(roots)
    if shows is not None:
        environment["GOOGLE_API_USE_CLIENT_CERTIFICATE"] = "true"
        for name, content in (("client.pem", shows.chain), ("client.key", shows.key)):
            (folder / name).write_bytes(content)
            arguments.append(str(folder / name))
    ended = subprocess.run(
        [sys.executable, "-m", "tests.security.client_program", *arguments],
        cwd=_ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    for secret in (TOKEN, PAYLOAD.decode()):
        assert secret not in ended.stdout + ended.stderr
    result: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return result
