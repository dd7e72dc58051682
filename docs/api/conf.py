"""How sphinx makes the API reference of the docstrings."""
# ruff: noqa: INP001 - sphinx runs this file; it is in no package

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from beam_hedge import __version__  # noqa: E402 - found through the line above

project = "beam-hedge"
author = "The beam-hedge authors"
version = release = __version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"beam-hedge {__version__}"
html_copy_source = False
html_show_copyright = False

# What stands in single backticks in a docstring is code.
default_role = "code"
autodoc_default_options = {"member-order": "bysource"}
# The constructors' arguments are described in the classes' docstrings.
autoclass_content = "class"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
# The signature has the types already.
napoleon_attr_annotations = False
maximum_signature_line_length = 80

# Names of other libraries, whose references are elsewhere: no build needs a network for them.
_FOREIGN = """
apache_beam.* ErrorHandler PCollection ValueProvider
google.* grpc.* BatchSettings ClientOptions Credentials FlowControlLimitError PublishFlowControl
array collections.abc.* concurrent.* contextvars.* datetime datetime.* threading.*
"""
# Ours, but not to be imported; and an alias, which sphinx takes for no class.
_INTERNAL = "MessageLike Script TokenBucket"
nitpick_ignore_regex = [("py:.*", name.replace(".*", r"\..*")) for name in (_FOREIGN + _INTERNAL).split()]


def _readable(*event: Any) -> tuple[str | None, str | None]:
    """Names a default that each instance makes anew in a way that sphinx can read."""
    *_, signature, returned = event
    return signature and signature.replace("<factory>", "..."), returned


def setup(app: Any) -> None:
    """Called by sphinx."""
    app.connect("autodoc-process-signature", _readable)
