"""The demonstration from the first line that it prints to the last."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from beam_hedge.testing import LatencyProfile
from demo.airports import write_airports
from demo.program import ProgramFailedError
from demo.run import BATCHES_IN_FLIGHT, MESSAGES_PER_BATCH, Setup
from demo.stall import EVERY_S, FREEZE_S, RATE, run_stall
from demo.stop import StoppedError, stop_on_signals
from demo.table import stall_table, table

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

_INTERRUPTED = 130
_NOTE = """\
Both runs are the same program over the same data, and the server's n-th request draws the same latency in both.
Latencies and hedges are the pipelines' own outcomes; requests, lost messages and duplicates are the server's.
This server stores a request when it arrives, so it holds what each hedge brought, too: as many duplicates as
hedging can cause. Delivery is at least once, with and without hedging."""

STALL_LINES = 900
_STALL = f"""\
3. A connection that freezes, {FREEZE_S:g} s every {EVERY_S:g} s
   {RATE} messages a second, one a request, through a relay in front of the server; hedged on one connection,
   as with a single gRPC channel, and on two, as this library does it"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the demonstration.

    Args:
        arguments: The command line without the program's name. Default: that of the process.

    Returns:
        The exit status: 0; 1 if a pipeline failed or a message is missing; 130 after Ctrl-C.
    """
    options = _parser().parse_args(arguments)
    with stop_on_signals() as stop:
        try:
            return _demonstrate(options, stop)
        except StoppedError:
            print("\nStopped. Nothing is left running.")
            return _INTERRUPTED
        except ProgramFailedError as error:
            print(f"The pipeline failed: {error}", file=sys.stderr)
            return 1


def _demonstrate(options: argparse.Namespace, stop: threading.Event) -> int:
    folder: Path = options.out
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "airports.jsonl"
    lines = write_airports(data, options.lines)
    setup = Setup(
        data=data,
        lines=lines,
        profile=options.profile,
        seed=options.seed,
        hedge_delay=options.hedge_delay,
        folder=folder,
    )
    print(f"Data      {len(lines):,} airports from vega_datasets as JSON lines: {data}")
    print(f"Server    an embedded Pub/Sub that answers {_described(options.profile)}")
    print(
        f"Pipeline  {MESSAGES_PER_BATCH} messages a batch, at most {BATCHES_IN_FLIGHT} batches in flight, "
        f"so that stalls add up as on a busy worker; a hedge after {1000 * options.hedge_delay:g} ms"
    )
    print("\n1. Without hedging", flush=True)
    plain = setup.run("without", hedging=False, stop=stop)
    print("\n2. With hedging", flush=True)
    hedged = setup.run("with", hedging=True, stop=stop)
    print(f"\n{table(plain, hedged)}\n\n{_NOTE}\n\n{_STALL}", flush=True)
    stalls = {
        connections: run_stall(lines[:STALL_LINES], connections, options.hedge_delay, stop)
        for connections in (1, 2)
    }
    print(stall_table(stalls))
    # After the runs: it takes seconds to load, the first time more.
    from demo.picture import save_picture  # noqa: PLC0415
    from demo.stall_picture import save_stall_picture  # noqa: PLC0415

    pictures = [folder / "hedging.png", folder / "connections.png"]
    save_picture(plain, hedged, pictures[0])
    save_stall_picture(stalls[1], stalls[2], pictures[1])
    print("\nPictures: " + ", ".join(map(str, pictures)))
    wrong = sum(result.delivery.lost + result.delivery.foreign for result in (plain, hedged))
    return 1 if wrong + sum(run.lost for run in stalls.values()) else 0


def _described(profile: LatencyProfile) -> str:
    parts = ", ".join(f"{100 * share:g} % in {1000 * seconds:g} ms" for share, seconds in profile.parts)
    return parts.replace(" %", " % of requests", 1)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {text!r}")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m demo",
        description="Publishes real data with and without hedging to a server with a long tail.",
        allow_abbrev=False,
    )
    parser.add_argument("--lines", type=_positive, help="how many airports to publish; default all")
    parser.add_argument(
        "--profile", type=LatencyProfile.parse, default="tail", help="the server's latencies; default tail"
    )
    parser.add_argument("--seed", type=int, default=0, help="the seed of the latencies; default 0")
    parser.add_argument("--hedge-delay", type=float, default=0.1, help="in seconds; default 0.1")
    parser.add_argument("--out", type=Path, default=Path("out"), help="the folder for files; default out")
    return parser
