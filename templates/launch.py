"""What a flex template's launcher starts, with the parameters as `--name=value`.

The image that this file is in says which pipeline it is, and what it is called itself: workers run in the
same image, so that they have the same Python, Beam and pipeline as the launcher.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

PIPELINE = "TEMPLATE_PIPELINE"
IMAGE = "TEMPLATE_IMAGE"


def main(arguments: Sequence[str]) -> None:
    """Starts the image's pipeline.

    Args:
        arguments: The command line, without the program's name.

    Raises:
        SystemExit: With status 2 after a message, if a parameter is wrong.
    """
    pipeline = import_module(f"pipelines.{os.environ[PIPELINE]}")
    # First: whoever launches can still name another image.
    pipeline.run([f"--sdk_container_image={os.environ[IMAGE]}", *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
