"""Loads the library with one mistake in it, beside the library that all other tests use."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from tests.model.bugs import Bug


class _Planter(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    def __init__(self, bug: Bug) -> None:
        self._bug = bug
        self._name = f"beam_hedge.{bug.module}"

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Takes the one module upon itself."""
        return importlib.util.spec_from_loader(fullname, self) if fullname == self._name else None

    def get_source(self, _fullname: str) -> str:
        """Gives the text with the mistake."""
        return self._bug.planted()


@contextmanager
def library_with(bug: Bug) -> Iterator[ModuleType]:
    """Loads the library anew with one mistake, and the machine on top of it; forgets both at the end.

    Args:
        bug: The mistake.

    Yields:
        The module `tests.model.machine`.
    """
    kept = {name: sys.modules.pop(name) for name in _ours()}
    planter = _Planter(bug)
    sys.meta_path.insert(0, planter)
    try:
        yield importlib.import_module("tests.model.machine")
    finally:
        sys.meta_path.remove(planter)
        for name in _ours():
            del sys.modules[name]
        sys.modules.update(kept)


def _ours() -> list[str]:
    return [name for name in sys.modules if name.partition(".")[0] in ("beam_hedge", "tests")]
