"""What several connections are worth when one of them stalls, and how the one for a request should be chosen.

Parts: `table`, each rule on the same stalls of one connection; `in_flight`, the same stalls with more
requests out; `faults`, 1, 2 and 4 connections side by side; `outage`, all connections at once. Loads are open
loop, publishers are real, the server runs in a process of its own and disturbs connections at its own end. Run
it with `python -m benchmarks.connection_stall`, which takes about a quarter of an hour, or with `--quick`.
"""

from __future__ import annotations

import argparse

from benchmarks.connections.case import Options
from benchmarks.connections.faults import compare_faults
from benchmarks.connections.in_flight import compare_loads
from benchmarks.connections.outage import show_outage
from benchmarks.connections.stalls import compare_rules
from benchmarks.disturbances import PLACES
from benchmarks.report import add_out

_PARTS = {
    "table": compare_rules,
    "in_flight": compare_loads,
    "faults": compare_faults,
    "outage": show_outage,
}


def _parts(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in _PARTS:
            raise argparse.ArgumentTypeError(f"no part is called {name!r}; there are {', '.join(_PARTS)}")
    return names


def main() -> None:
    """Measures, and writes a report for each part."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--parts", type=_parts, default=list(_PARTS), help="such as table,outage; default all")
    parser.add_argument("--quick", action="store_true", help="short runs: a look, no figures to publish")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--which", choices=PLACES, default="first", help="the connection that stalls")
    add_out(parser)
    args = parser.parse_args()
    options = Options(quick=args.quick, seed=args.seed, which=args.which, out=args.out)
    for part in args.parts:
        print(f"{part}:", flush=True)
        _PARTS[part](options)


if __name__ == "__main__":
    main()
