"""What the sink gives to later steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import apache_beam as beam

if TYPE_CHECKING:
    from apache_beam.pvalue import PCollection

    from beam_hedge.dead_letters import FailedMessage
    from beam_hedge.outcome import PublishOutcome


@dataclass(frozen=True)
class WriteResult:
    """The sink's outputs, as far as they were asked for.

    Args:
        outcomes: Outcomes of batches, if `with_outcomes` was set.
        dead_letters: Messages that were refused, if `dead_letter` was set.
    """

    outcomes: PCollection[PublishOutcome] | None
    dead_letters: PCollection[FailedMessage] | None

    @property
    def published(self) -> PCollection[PublishOutcome]:
        """The outcome of each published batch; a later step that takes it waits for the write.

        Raises:
            ValueError: They were not asked for.
        """
        if self.outcomes is None:
            raise ValueError("published is there only with WriteToPubSubHedged(..., with_outcomes=True)")
        return self.outcomes

    @property
    def failed(self) -> PCollection[FailedMessage]:
        """The messages that were not published because of what they hold.

        Raises:
            ValueError: They were not asked for: a refused message fails its bundle.
        """
        if self.dead_letters is None:
            raise ValueError("failed is there only with WriteToPubSubHedged(..., dead_letter=True)")
        return self.dead_letters


def own_step(output: PCollection[Any], name: str, element_type: type) -> PCollection[Any]:
    """Gives one of several outputs a step of its own, and its type.

    On the BundleBasedDirectRunner a side input that is made of one of several outputs of a step is empty.
    """
    # Beam takes every output to be of the main one's type.
    output.element_type = element_type
    step: PCollection[Any] = output | name >> beam.Map(_same).with_output_types(element_type)
    return step


def _same(element: Any) -> Any:
    return element
