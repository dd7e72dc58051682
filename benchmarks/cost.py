"""What hedging adds in requests, bytes and money, and what it saves, measured on the published tail workload.

Copies are counted by the server, which runs in a process of its own and takes every request as published: the
worst case, since a service may see some of the cancelled ones too late to be stored. What is saved is time in
which threads of workers wait for their bundles. Prices are the list's, and arguments. Run it with `python -m
benchmarks.cost`, which takes about twelve minutes, or with `--quick`.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from matplotlib.ticker import FormatStrFormatter

from beam_hedge import HedgingPublisher, HedgingSettings
from benchmarks import plots
from benchmarks.amounts import Amount, parse
from benchmarks.load import even, offer
from benchmarks.prices import Prices, billed
from benchmarks.report import Column, Report
from benchmarks.server import serving
from benchmarks.spread import columns, spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

_PROFILE = "tail"
_SIZE = 1024
_RATE = 200.0
_MILLION = 1e6
_GIB = 2**30
_CENT = 100
_SETTINGS = {"off": None, "on": HedgingSettings(hedge_delay=0.1, max_tokens=50, refill_ratio=0.1)}
_AMOUNTS = (
    Amount("runs", 5, 1, "runs of each line, in turn"),
    Amount("warm_up", 5.0, 3.0, "seconds before the measurement"),
    Amount("duration", 30.0, 8.0, "seconds of the measurement"),
)
# The day on which the page of Pub/Sub's prices had the default. The one for Dataflow is us-central1's, as Beam
# 2.77 has it among the constants of its own cost benchmarks.
_LISTED = "2026-09-20"
_COLUMNS = (
    Column("messages", "messages a request", "d"),
    Column("name", "hedging"),
    *columns("extra_percent", "extra requests %", "+.2f"),
    *columns("gib", "GiB published, by the bill", ".4f"),
    *columns("wait", "hours that threads wait", ".4f"),
    *columns("publishing", "publishing, cents", ".3f"),
    *columns("delivering", "delivering, cents", ".3f"),
    *columns("waiting", "waiting, cents", ".3f"),
)


@dataclass(frozen=True)
class Measured:
    """One run.

    Attributes:
        batches: Batches that were published.
        requests: Requests that the server saw for them.
        waited: Seconds that all batches together took.
    """

    batches: int
    requests: int
    waited: float


def measure(name: str, messages: int, args: argparse.Namespace, seed: int) -> Measured:
    """Publishes the tail workload, with so many messages a request."""
    with (
        serving(_PROFILE, seed) as server,
        HedgingPublisher(server.topic, _SETTINGS[name]) as publisher,
    ):
        batches = _Batches(publisher, messages)
        offer(batches, even(_RATE, args.warm_up))  # type: ignore[arg-type]  # as much of a publisher as it needs
        before = server.seen().requests
        run = offer(batches, even(_RATE, args.duration))  # type: ignore[arg-type]
        requests = server.seen().requests - before
    return Measured(len(run.sent), requests, sum(each.latency for each in run.sent))


class _Batches:
    """A publisher that makes a batch of each message.

    Args:
        publisher: The real one.
        messages: How many copies a batch holds.
    """

    def __init__(self, publisher: HedgingPublisher, messages: int) -> None:
        self._publisher = publisher
        self._messages = messages

    def publish(self, messages: Sequence[bytes]) -> object:
        """Publishes a batch."""
        return self._publisher.publish([*messages] * self._messages)


def per_million(run: Measured, messages: int, prices: Prices) -> dict[str, float]:
    """Returns what a million messages come to.

    Args:
        run: What was measured.
        messages: Of a request.
        prices: What things cost.
    """
    scale = _MILLION / (run.batches * messages)
    requests = run.requests * scale
    return {
        "extra_percent": 100 * (run.requests / run.batches - 1),
        "gib": requests * billed(messages, _SIZE) / _GIB,
        "wait": run.waited * scale / 3600,
        "publishing": _CENT * prices.publishing(requests, messages, _SIZE),
        "delivering": _CENT * prices.delivering(requests * messages, _SIZE),
        "waiting": _CENT * prices.waiting(run.waited * scale),
    }


def balance(rows: Sequence[dict[str, Any]]) -> dict[int, tuple[float, float]]:
    """Returns, by messages a request, the cents that hedging adds to a million messages, and those it saves."""
    found: dict[int, tuple[float, float]] = {}
    for off, on in zip(rows[::2], rows[1::2], strict=True):
        added = sum(on[key] - off[key] for key in ("publishing", "delivering"))
        found[off["messages"]] = added, off["waiting"] - on["waiting"]
    return found


def main() -> None:
    """Measures, and writes a report."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--messages", type=int, nargs="+", default=[1, 100], help="of a request")
    parser.add_argument("--tib", type=float, default=40.0, help="dollars for each TiB of throughput")
    parser.add_argument(
        "--vcpu_hour", type=float, default=0.069, help="dollars for each hour of a worker's vCPU"
    )
    parser.add_argument("--threads", type=int, default=12, help="threads that share a vCPU")
    parser.add_argument("--subscriptions", type=int, default=1, help="how often each message is delivered")
    parser.add_argument("--listed", default=_LISTED, help="the day of the prices")
    args = parse(parser, _AMOUNTS)
    prices = Prices(args.tib, args.vcpu_hour, args.threads, args.subscriptions)
    runs: dict[tuple[int, str], list[Measured]] = {
        (messages, name): [] for messages in args.messages for name in _SETTINGS
    }
    for seed in range(args.runs):
        for (messages, name), found in runs.items():
            found.append(measure(name, messages, args, seed))
            print(f"  {messages} a request, hedging {name}", flush=True)
    rows: list[dict[str, Any]] = []
    for (messages, name), found in runs.items():
        row: dict[str, Any] = {"messages": messages, "name": name}
        costs = [per_million(run, messages, prices) for run in found]
        for key in costs[0]:
            row |= spread(key, [cost[key] for cost in costs])
        rows.append(row)
    sums = "; ".join(
        f"with {messages} a request it adds {added:.3f} cents and saves {saved:.3f}"
        for messages, (added, saved) in balance(rows).items()
    )
    text = (
        f"A million messages of 1 KiB, from {_RATE:g} requests a second for {args.duration:g} s, of which 95 % "
        f"take 5 ms, 4 % 300 ms and 1 % 4 s; hedge delay 100 ms, 50 tokens, refill 0.1. Medians of {args.runs} "
        f"alternating runs. Hedging: {sums}. What it is for is latency.\n\n"
        f"Prices of {args.listed}: ${args.tib:g} a TiB of [Pub/Sub's throughput]"
        "(https://cloud.google.com/pubsub/pricing), published and delivered, at least 1,000 bytes a publish "
        f"request; ${args.vcpu_hour:g} an hour of a [Dataflow worker's vCPU]"
        f"(https://cloud.google.com/dataflow/pricing) in us-central1. {args.subscriptions} subscription(s); "
        f"{args.threads} threads share a vCPU, and one that waits takes up its part of it. Every request is "
        "counted as stored and delivered, also those that were cancelled."
    )
    Report("cost", "What hedging costs, and what it saves", text, _COLUMNS, rows).write(draw(rows), args.out)


def draw(rows: Sequence[dict[str, Any]]) -> Figure:
    """Draws what hedging adds beside what it saves."""
    balances = balance(rows)
    messages, (added, saved) = next(iter(balances.items()))
    figure = plots.new_figure(
        f"With {messages} a request, hedging adds {added:.2g} cents a million messages and saves {saved:.2g}",
        "Added: what Pub/Sub charges for extra copies. Saved: time in which threads of workers wait.\n"
        "US cents for a million messages of 1 KiB, at list prices, on a logarithmic axis.",
        height=4.2,
    )
    axes = figure.add_subplot()
    labels: list[str] = []
    for messages, (added, saved) in balances.items():
        for name, cents, color in (("added", added, plots.BAD), ("saved", saved, plots.OURS)):
            # Nothing has no place on such an axis.
            if cents > 0:
                axes.plot([cents], [len(labels)], "o", color=color, markersize=12)
                axes.annotate(
                    f"{cents:.3g} cents", (cents, len(labels)), (12, 0), textcoords="offset points", va="center"
                )
            labels.append(f"{messages} message{'s' * (messages > 1)} a request: {name}")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FormatStrFormatter("%g cents"))
    axes.margins(x=0.25)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    plots.clean(axes, "both")
    return figure


if __name__ == "__main__":
    main()
