"""How much a benchmark does: much for figures to publish, little for a look, or what the command line says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.report import add_out

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


@dataclass(frozen=True)
class Amount:
    """An argument whose default depends on `--quick`.

    Attributes:
        name: Its name.
        full: The default for figures to publish.
        quick: The default for a look.
        text: What it is, for `--help`.
    """

    name: str
    full: float
    quick: float
    text: str


def parse(
    parser: argparse.ArgumentParser, amounts: Sequence[Amount], arguments: Sequence[str] | None = None
) -> argparse.Namespace:
    """Adds `--quick`, the amounts and `--out` to a parser, and parses.

    Args:
        parser: May have arguments of its own.
        amounts: Positive numbers; whole ones if their default is.
        arguments: What to parse. Default: the command line.
    """
    parser.add_argument("--quick", action="store_true", help="short runs: a look, no figures to publish")
    for amount in amounts:
        text = f"{amount.text}; default {amount.full:,}, or {amount.quick:,} if quick"
        parser.add_argument(f"--{amount.name}", type=type(amount.full), help=text)
    add_out(parser)
    args = parser.parse_args(arguments)
    for amount in amounts:
        given = getattr(args, amount.name)
        if given is None:
            setattr(args, amount.name, amount.quick if args.quick else amount.full)
        elif given <= 0:
            parser.error(f"--{amount.name} must be above 0, got {given}")
    return args
