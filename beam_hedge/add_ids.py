"""The step that gives each element an id before the write step, so that a retried bundle keeps the ids."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import apache_beam as beam

if TYPE_CHECKING:
    from apache_beam.pvalue import PCollection


class AddIds(beam.PTransform[Any, Any]):
    """Pairs each element with an id that does not change when later steps are tried again.

    The reshuffle is what makes a runner keep the ids: it would make new ones if it ran this step again, too.

    Args:
        element_type: The type of the elements.
    """

    def __init__(self, element_type: Any) -> None:
        super().__init__()
        self._element_type = element_type

    def expand(self, elements: PCollection[Any]) -> PCollection[tuple[str, Any]]:
        """Adds the steps."""
        add = beam.Map(_with_id).with_input_types(self._element_type)
        pair_type: Any = tuple[str, self._element_type]  # type: ignore[name-defined]  # a type that is a value
        pairs = elements | "Add" >> add.with_output_types(pair_type)
        kept: PCollection[tuple[str, Any]] = pairs | "Keep" >> beam.Reshuffle()
        return kept


def _with_id(element: Any) -> tuple[str, Any]:
    return uuid.uuid4().hex, element
