"""Publishes for minutes while all kinds of things go wrong, and looks for broken promises all the time.

Run it with `python -m benchmarks.soak`; `--service emulator` has Google's own emulator at the other end. It
fails with the first broken promise of each kind in words.
"""

from __future__ import annotations

import argparse

from benchmarks.report import add_out
from benchmarks.soaking.faults import FAULTS
from benchmarks.soaking.page import summary, write_page
from benchmarks.soaking.run import soak


def main() -> None:
    """Soaks, writes a report, and exits with 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--seconds", type=float, default=600.0, help="default 600")
    parser.add_argument("--seed", type=int, default=1, help="of faults and load; default 1")
    parser.add_argument("--service", choices=sorted(FAULTS), default="local", help="default local")
    parser.add_argument("--rate", type=float, default=300.0, help="messages a second, about; default 300")
    add_out(parser)
    args = parser.parse_args()
    findings = soak(args.seconds, args.seed, args.service, args.rate)
    write_page(findings, args.service, args.out)
    print("\n".join(summary(findings)))
    if findings.violations:
        raise SystemExit("".join(f"\nBROKEN: {each}" for each in findings.violations))
    print("no promise was broken")


if __name__ == "__main__":
    main()
