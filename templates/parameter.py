"""What a person is told about one parameter of a template."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from templates.kinds import Kind


@dataclass(frozen=True)
class Parameter:
    """What a person is told about one parameter.

    Its name, its default and its place are those of the pipeline's option, and stand only there.

    Attributes:
        label: Its name on the launch page.
        help_text: What it means, with the range of its values.
        kind: How it is entered.
        group: The heading that it stands under, if it has no parent.
        parent: The parameter that it depends on: it is shown only if that one has a certain value.
        shown_if: The values of the parent that show it. Empty: any that is not blank.
    """

    label: str
    help_text: str
    kind: Kind
    group: str | None = None
    parent: str | None = None
    shown_if: tuple[str, ...] = ()
