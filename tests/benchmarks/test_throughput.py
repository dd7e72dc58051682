"""Throughput: what is compared with what, and that each way really publishes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import pytest

from benchmarks.amounts import Amount, parse
from benchmarks.server import serving
from benchmarks.shapes import SHAPES, Shape
from benchmarks.spread import spread
from benchmarks.throughput import convoy_check, server_check
from benchmarks.throughput_plots import draw_clients, draw_pipelines
from benchmarks.throughput_ways import (
    BEAM,
    BYTES,
    CLIENT,
    FLOORS,
    FULL,
    PROTOBUFS,
    PUBLISH,
    SINK,
    USUAL,
    Options,
    Way,
    measure,
    rows,
    ways,
)
from benchmarks.usage import Published, own_process
from benchmarks.write_stage import Stage
from tests.beam.pipelines import close_publishers
from tests.benchmarks.inline import Inline

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

    from benchmarks.throughput_ways import Found

OPTIONS = Options(runs=1, seconds=0.01, data=20_000, messages=200, threads=(1, 2))
WITH_ID = Shape(1024, 5, has_id=True)


@pytest.fixture(autouse=True)
def no_lingering_publishers() -> Iterator[None]:
    """Closes what pipelines in this process have opened."""
    yield
    close_publishers()


def published(rate: float, cpu_us: float) -> Published:
    """A run of a second."""
    return Published(round(rate), rate * cpu_us / 1e6, 1.0)


def stage(rate: float, cpu_us: float) -> Stage:
    """A run of a pipeline of which the write stage takes a half of the CPU."""
    return Stage(published(rate, 2 * cpu_us), published(rate, cpu_us))


FOUND: Found = {
    USUAL: {
        Way(PROTOBUFS): [published(200, 4)],
        Way(BYTES): [published(600, 2)],
        Way(BEAM): [stage(10, 60)],
        Way(SINK): [stage(100, 5), stage(200, 6), stage(300, 10)],
        Way(CLIENT, 1): [published(20, 50)],
        Way(CLIENT, 4): [published(10, 100)],
        Way(PUBLISH, 1): [published(200, 5)],
        Way(PUBLISH, 4): [published(190, 5)],
    }
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_batch_of_each_shape_fits_the_default_settings(shape: Shape) -> None:
    """All ways are compared with batches of one size, the one that users get."""
    size = len(shape.data) + sum(len(key) + len(value) for key, value in shape.all_attributes.items())
    assert 1 <= shape.batch <= 100
    assert shape.batch == 100 or shape.batch * size <= 1_000_000


def test_runs_become_medians_with_their_bounds() -> None:
    """A figure is told with the least and the most of its runs."""
    assert spread("rate", [3.0, 1.0, 2.0]) == {"rate": 2.0, "rate_least": 1.0, "rate_most": 3.0}


def test_sinks_are_compared_with_beams() -> None:
    """Messages a second are those of the whole pipeline, and CPU is that of the write stage alone."""
    lines = {line["name"]: line for line in rows(FOUND, Stage, BEAM)}
    assert list(lines) == [PROTOBUFS, BYTES, BEAM, SINK]
    sink = lines[SINK]
    assert (sink["rate"], sink["rate_least"], sink["rate_most"]) == (200, 100, 300)
    assert (sink["times"], sink["cpu_us"], sink["to_floor"]) == pytest.approx((20, 6, 1.5))


def test_publishers_are_compared_with_the_client_on_as_many_threads() -> None:
    """A publisher does not look better because the client had more threads than it."""
    lines = {(line["name"], line["threads"]): line for line in rows(FOUND, Published, CLIENT)}
    times = [lines[key]["times"] for key in ((PUBLISH, 1), (PUBLISH, 4), (PROTOBUFS, ""))]
    assert times == pytest.approx([10, 19, 10])


def test_messages_with_an_id_are_compared_with_the_same_without() -> None:
    """Beam's sink has no ids in batch pipelines, and the table says what it does without them."""
    found: Found = {
        Shape(1024, 5): FOUND[USUAL],
        WITH_ID: {Way(PROTOBUFS): [published(100, 8)], Way(SINK): [stage(50, 12)]},
    }
    lines = [line for line in rows(found, Stage, BEAM) if line["shape"] == str(WITH_ID)]
    assert [line["times"] for line in lines] == [10, 5]
    # Nothing of it stands in the table of publishers.
    assert {line["shape"] for line in rows(found, Published, CLIENT)} == {str(Shape(1024, 5))}


@pytest.mark.parametrize(("rate", "words"), [(600, "is not what limits"), (590, "may limit")])
def test_the_server_is_checked(rate: float, words: str) -> None:
    """A reader is told when the server, and not the sink, may be what was measured."""
    found = {USUAL: FOUND[USUAL] | {Way(BYTES): [published(rate, 2)]}}
    assert words in server_check(rows(found, Stage, BEAM))


def test_threads_are_compared() -> None:
    """A reader is told what many threads on one publisher are worth."""
    assert "4 threads" in convoy_check(rows(FOUND, Published, CLIENT))
    assert "0.95 times the messages/s of 1" in convoy_check(rows(FOUND, Published, CLIENT))


def test_pictures_hold_all_that_they_compare() -> None:
    """The pictures say how many times faster, and have a name for each dot."""
    pipelines = draw_pipelines(rows(FOUND, Stage, BEAM), (BEAM, SINK, PROTOBUFS, BYTES))
    clients = draw_clients(rows(FOUND, Published, CLIENT), (CLIENT, PUBLISH, PROTOBUFS, BYTES))
    assert pipelines.texts[0].get_text() == f"{SINK}: 20.0 to 20 times the messages/s of {BEAM}"
    assert [text.get_text() for text in clients.legends[0].texts] == [CLIENT, PUBLISH, PROTOBUFS, BYTES]
    assert [label.get_text() for label in clients.axes[0].get_yticklabels()] == [
        "1 KiB\n1 thread",
        "1 KiB\n4 threads",
    ]


def test_amounts_depend_on_quick_and_on_the_command_line() -> None:
    """`--quick` is short, and whoever names an amount gets it."""
    amounts = (Amount("runs", 5, 1, "runs"), Amount("seconds", 1.0, 0.2, "seconds"))

    def given(*arguments: str) -> tuple[int, float]:
        args = parse(argparse.ArgumentParser(), amounts, arguments)
        return args.runs, args.seconds

    assert given() == (5, 1.0)
    assert given("--quick") == (1, 0.2)
    assert given("--quick", "--seconds", "3") == (1, 3.0)


@pytest.mark.parametrize("arguments", [["--runs", "0"], ["--runs", "1.5"], ["--seconds", "-1"]])
def test_amounts_that_measure_nothing_are_refused(arguments: list[str]) -> None:
    """A mistyped amount ends the program before it measures."""
    amounts = (Amount("runs", 5, 1, "runs"), Amount("seconds", 1.0, 0.2, "seconds"))
    with pytest.raises(SystemExit):
        parse(argparse.ArgumentParser(), amounts, arguments)


@pytest.mark.parametrize("shape", [Shape(100), Shape(100, 5, has_id=True)], ids=str)
def test_every_way_publishes_what_it_says(shape: Shape) -> None:
    """A rate is that of messages which the server has seen."""
    chosen = ways(shape, OPTIONS.threads)
    assert (Way(BEAM) in chosen) != shape.has_id
    assert (Way(FULL) in chosen) == shape.has_id
    with serving() as server, own_process() as other:
        # gRPC does not take well to two asyncio loops in one process.
        processes: dict[str, Executor] = {way.name: other if way.name in FLOORS else Inline() for way in chosen}
        found = measure(shape, OPTIONS, processes)
        seen = server.seen().messages
    assert list(found) == chosen
    wholes = [run.whole if isinstance(run, Stage) else run for runs in found.values() for run in runs]
    assert all(whole.messages > 0 and whole.rate > 0 for whole in wholes)
    # Publishers and floors publish a batch more, before they are measured.
    assert sum(whole.messages for whole in wholes) <= seen
    assert seen <= sum(whole.messages for whole in wholes) + shape.batch * len(chosen)
