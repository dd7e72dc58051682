"""One flag of a pipeline: how it is declared, and what giving it twice or blank means."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from pipelines.values import boolean

if TYPE_CHECKING:
    from collections.abc import Callable


def add_flag(
    parser: argparse.ArgumentParser,
    name: str,
    read: Callable[[str], Any],
    help_text: str,
    *,
    default: object = None,
    metavar: str | None = None,
) -> None:
    """Adds a flag to a parser, Beam's or another one.

    A blank value is the same as leaving the flag out: launchers pass one for a parameter that was not
    filled in. A flag that is given twice must have the same value each time. A boolean flag without a
    value is true.

    Args:
        parser: The parser.
        name: The flag's name, without dashes.
        read: Reads its value from text, or raises `argparse.ArgumentTypeError`.
        help_text: One sentence for `--help`; the default is added.
        default: Its value if it is not given.
        metavar: What stands for the value in `--help`. Default: the name in capitals.
    """
    word: dict[str, Any] = {"nargs": "?", "const": True, "metavar": "true|false"} if read is boolean else {}
    parser.add_argument(
        f"--{name}",
        action=_Once,
        type=_unless_blank(read),
        default=default,
        help=_with_default(help_text, default),
        **word or {"metavar": metavar},
    )


def _unless_blank(read: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: read(text) if text.strip() else None


def _with_default(help_text: str, default: object) -> str:
    if default is None:
        return help_text
    shown = str(default).lower() if isinstance(default, bool) else str(default)
    return f"{help_text} Default {shown}."


class _Once(argparse.Action):
    """Stores a flag's value; contradicting itself is an error, repeating itself is not.

    Beam parses the same flags with the same parser more than once, so the state is the value itself.
    """

    _given: object = None

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 - argparse decides what an action is called with
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        if values is None:
            return
        if self._given is not None and values != self._given:
            raise argparse.ArgumentError(self, f"is given more than once: {self._given!r} and {values!r}")
        self._given = values
        setattr(namespace, self.dest, values)
