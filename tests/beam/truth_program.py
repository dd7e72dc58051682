"""A worker that ends without a teardown: `python truth_program.py HOW`, with an emulator in the environment.

It publishes a bundle, says so, and then ends in the way that is asked for.
"""

from __future__ import annotations

import gc
import logging
import sys
from typing import TYPE_CHECKING, Any

import apache_beam as beam

from beam_hedge import WriteToPubSubHedged
from tests.beam.pipelines import batches_of, make_fn, run_bundle
from tests.server.serving import TOPIC, UNHURRIED

if TYPE_CHECKING:
    from collections.abc import Callable

# What a runner that forgets its instances still holds at the end of the process.
KEPT: list[Any] = []


def make() -> Any:
    """Makes a DoFn that has published a bundle."""
    write_fn = make_fn(UNHURRIED, batch_settings=batches_of(1))
    write_fn.setup()
    run_bundle(write_fn, [b"finished"])
    return write_fn


def keep() -> None:
    """Holds on to the instance."""
    KEPT.append(make())


def drop() -> None:
    """Forgets the instance."""
    make()
    gc.collect()


def keep_in_mid_bundle() -> None:
    """Holds on to an instance with a request out."""
    keep()
    KEPT[0].start_bundle()
    KEPT[0].process(b"unfinished")
    wait_for_the_word()


def drop_in_mid_bundle() -> None:
    """Forgets an instance with a request out, in a cycle, as a runner that keeps tracebacks does."""
    keep_in_mid_bundle()
    write_fn = KEPT.pop()
    write_fn.itself = write_fn


def fail_in_a_pipeline() -> None:
    """Lets a runner fail that never tears down an instance whose bundle failed."""
    keep()
    # Beam tells of the error on its own account.
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL + 1)
    try:
        with beam.Pipeline(runner="BundleBasedDirectRunner") as pipeline:
            _ = pipeline | beam.Create([b""]) | WriteToPubSubHedged(TOPIC, UNHURRIED)
    except Exception as error:  # noqa: BLE001 - what a runner wraps errors in is its own matter
        sys.stdout.write(f"{'neither' in str(error)}\n")


def wait_for_the_word() -> None:
    """Tells that a request is on its way, and waits until somebody says that it has arrived."""
    sys.stdout.write("out\n")
    sys.stdout.flush()
    sys.stdin.readline()


WAYS: dict[str, Callable[[], None]] = {
    way.__name__: way for way in (keep, drop, keep_in_mid_bundle, drop_in_mid_bundle, fail_in_a_pipeline)
}

if __name__ == "__main__":
    WAYS[sys.argv[1]]()
    sys.stdout.write(f"{TOPIC}\n")
