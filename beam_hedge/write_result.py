"""What the sink gives to later steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
