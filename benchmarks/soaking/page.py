"""What a soak leaves behind: a table by fault, a picture over time, and each second as CSV."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

from benchmarks import plots
from benchmarks.report import Column, Report
from benchmarks.soaking import verdict
from benchmarks.soaking.ledger import Fate
from benchmarks.soaking.publishers import SETTINGS
from benchmarks.soaking.watch import MIB
from demo.result import percentile

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from benchmarks.soaking.findings import Findings

_COLUMNS = (
    Column("fault", "what goes wrong"),
    Column("seconds", "seconds", ".0f"),
    Column("messages", "messages acknowledged", ",d"),
    Column("p50_ms", "p50 ms"),
    Column("p99_ms", "p99 ms"),
    Column("hedges", "hedges", ",d"),
)
_CALM = ("calm", "idle")
_BAND = "#e9ecee"


def write_page(findings: Findings, service: str, out: Path) -> None:
    """Writes the report.

    Args:
        findings: What to tell.
        service: What was published to.
        out: The folder.
    """
    name = "soak" if service == "local" else f"soak_{service}"
    what = "an embedded Pub/Sub" if service == "local" else "Google's emulator"
    title = f"A soak with {what}, in its own process"
    report = Report(name, title, _text(findings), _COLUMNS, _rows(findings))
    report.write(_draw(findings, what), out)
    with (out / f"{name}_seconds.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["at", "fault", "messages", "hedges", "p50_ms", "p99_ms", "rss", "threads", "fds"])
        for each in findings.seconds:
            used = each.usage
            held = (used.rss, used.threads, used.descriptors)
            latencies = (each.p50_ms, each.p99_ms)
            writer.writerow([f"{used.at:.2f}", each.fault, each.messages, each.hedges, *latencies, *held])


def summary(findings: Findings) -> list[str]:
    """Returns the accounts in words, a line each."""
    lines = []
    for topic, books in findings.books.items():
        told = {fate: books.told[fate] for fate in Fate}
        paid = SETTINGS.initial_tokens + SETTINGS.refill_ratio * (books.published + books.perhaps)
        lines.append(
            f"{topic.rpartition('/')[2]}: {books.inputs:,} messages = {verdict.acknowledged(books):,} "
            f"acknowledged + {told[Fate.FAILED]:,} failed + {told[Fate.DEAD_LETTER]:,} dead letters + "
            f"{told[Fate.CANCELLED]:,} cancelled + {books.out:,} out; {books.failed_tries:,} bundles tried "
            f"again; {max(books.hedges, findings.hedges.get(topic, 0)):,} hedges, {paid:,.0f} were paid for"
        )
    first, last = findings.seconds[len(findings.seconds) // 2].usage, findings.seconds[-1].usage
    lines.append(
        f"memory {first.rss / MIB:.1f} MiB half way, {last.rss / MIB:.1f} at the end; threads {first.threads} "
        f"and {last.threads}; descriptors {first.descriptors} and {last.descriptors}; "
        f"{findings.copies:,} messages stored more than once"
    )
    return lines


def _text(findings: Findings) -> str:
    broken = "\n".join(f"- {each}" for each in findings.violations)
    result = f"**Broken promises:**\n\n{broken}" if broken else "No promise was broken."
    account = "\n".join(f"- {line}" for line in summary(findings))
    return (
        "Threads do bundles with the sink's DoFn, as a worker does, and try again what fails; others publish "
        "with a publisher, and cancel some. Meanwhile things go wrong, as a seed has it. Once a second: each "
        "message that went in is acknowledged, failed, a dead letter, cancelled or out; what is acknowledged "
        "is stored; hedges are paid for by what was published; permits are not negative, and zero in idle "
        "times; in the second half, the trend of memory would "
        "add 20 MiB at most to the whole run, and there are no more threads and descriptors than before.\n\n"
        f"{result}\n\n{account}\n\n"
        "Latencies are those of batches, in the table by what went wrong when their callers were told."
    )


def _rows(findings: Findings) -> list[dict[str, Any]]:
    rows = []
    for fault, latencies in sorted(findings.latencies_ms.items(), key=lambda item: item[0]):
        ordered = sorted(latencies)
        seconds = [each for each in findings.seconds if each.fault == fault]
        rows.append(
            {
                "fault": fault,
                "seconds": sum(end - begin for begin, end, name in findings.phases if name == fault),
                "messages": sum(each.messages for each in seconds),
                "p50_ms": f"{percentile(ordered, 50):.1f}" if ordered else "-",
                "p99_ms": f"{percentile(ordered, 99):.0f}" if ordered else "-",
                "hedges": sum(each.hedges for each in seconds),
            }
        )
    return rows


def _draw(findings: Findings, what: str) -> Figure:
    seconds = findings.seconds
    broken = len(findings.violations)
    total = sum(verdict.acknowledged(books) for books in findings.books.values())
    figure = plots.new_figure(
        f"{broken} promises broken" if broken else "Whatever goes wrong, nothing is lost",
        f"{total:,} messages to {what}; each was acknowledged and is stored, or its caller was told.\n"
        "Grey: something is wrong, and the rows at the bottom say what. "
        "Green: a pause, at whose end all permits are back.",
        width=14,
        height=11,
    )
    panels = figure.subplots(5, 1, sharex=True, height_ratios=(2, 2, 2, 2, 3))
    at = [each.usage.at for each in seconds]
    _line(panels[0], at, [each.messages for each in seconds], "messages acknowledged a second")
    p99 = [float("nan") if each.p99_ms is None else each.p99_ms for each in seconds]
    _line(panels[1], at, p99, "publish latency, 99th percentile of each second")
    plots.latency_axis(panels[1], "y", "")
    _line(panels[2], at, [each.hedges for each in seconds], "hedges a second")
    _line(panels[3], at, [each.usage.rss / MIB for each in seconds], "memory of the publishing process, MiB")
    for axes in (panels[0], panels[2], panels[3]):
        axes.set_ylim(bottom=0)
    _draw_faults(panels[4], findings)
    for axes in panels:
        for begin, end, name in findings.phases:
            if name not in _CALM:
                axes.axvspan(begin, end, color=_BAND, linewidth=0, zorder=0)
        plots.clean(axes)
    panels[4].grid(visible=False)
    panels[4].set_xlabel("seconds", color=plots.GREY, fontsize=11)
    return figure


def _line(axes: Axes, at: Sequence[float], values: Sequence[float], title: str) -> None:
    axes.plot(at, values, color=plots.OURS, linewidth=1.8)
    axes.set_title(title, loc="left")


def _draw_faults(axes: Axes, findings: Findings) -> None:
    names = sorted({name for _begin, _end, name in findings.phases if name != "calm"})
    for row, mine in enumerate(names):
        spans = [(begin, end - begin) for begin, end, name in findings.phases if name == mine]
        color = plots.OTHERS[2] if mine == "idle" else plots.BAD
        axes.broken_barh(spans, (row - 0.35, 0.7), color=color)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_title("what is wrong", loc="left")
