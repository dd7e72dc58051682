"""The token that requests carry expires, and its renewal fails; over TLS, as no token goes anywhere else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.security.certificates import self_signed
from tests.security.secure_server import secure_server

if TYPE_CHECKING:
    from tests.faults.row import Matrix

SECTION = "The program that publishes"
MESSAGES = 4
_ROOT = Path(__file__).parents[2]
_PATIENCE = 90


@pytest.mark.parametrize(
    ("fault", "renewals", "failed"),
    [
        ("the token expires, and its renewal fails once", "yny", 0),
        ("there is no token, until the total timeout", "n", MESSAGES),
    ],
    ids=["once", "always"],
)
def test_a_token_expires(fault: str, renewals: str, failed: int, matrix: Matrix, tmp_path: Path) -> None:
    """A token that cannot be had for a moment costs a retry; one that cannot be had at all is told of."""
    timeout = "2" if failed else "60"
    program = [sys.executable, "-m", "tests.faults.program_token"]
    certificate = self_signed()
    roots = tmp_path / "roots.pem"
    roots.write_bytes(certificate.chain)
    with secure_server(certificate) as server:
        ended = subprocess.run(
            [*program, server.endpoint, renewals, str(MESSAGES), timeout],
            cwd=_ROOT,
            # gRPC would ask a proxy for a server of this machine, too.
            env={**os.environ, "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(roots), "no_grpc_proxy": "localhost"},
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout.splitlines()[-1])
    row = matrix.row(
        fault,
        section=SECTION,
        inputs=[b"message %d" % number for number in range(MESSAGES)],
        acknowledged=[message.encode() for message in told["acknowledged"]],
        failed=[message.encode() for message in told["failed"]],
        stored=[data for _, messages in server.calls for data in messages],
        hedges=told["hedges"],
    )
    assert row.failed == failed
    assert told["errors"] == (["UNAVAILABLE"] if failed else [])
    # The first for each message, and the one that failed.
    assert told["asked"] > MESSAGES
