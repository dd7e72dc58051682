"""Which messages are relayed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from beam_hedge import InvalidSettingError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class MessageFilter:
    """Tells by one attribute whether a message is relayed.

    It looks at the attributes as they came, before any is renamed or added.

    Attributes:
        key: The attribute. `None`: every message is relayed. A message without it is not.
        value: What it must be. `None`: anything.
        regex: What the whole of it must match, as `re.fullmatch` does. `None`: anything.

    Raises:
        InvalidSettingError: There is a value or an expression without a key, or both of them.

    Example:
        >>> MessageFilter("country", regex="NL|BE").lets_through({"country": "BE"})
        True
    """

    key: str | None = None
    value: str | None = None
    regex: str | None = None

    def __post_init__(self) -> None:
        for field in ("filter_value", "filter_regex"):
            text = getattr(self, field.removeprefix("filter_"))
            if text is not None and self.key is None:
                raise InvalidSettingError(field, text, "given together with filter_key")
        if self.value is not None and self.regex is not None:
            raise InvalidSettingError("filter_regex", self.regex, "left out, as there is a filter_value")

    def lets_through(self, attributes: Mapping[str, str]) -> bool:
        """Tells whether a message with these attributes is relayed."""
        if self.key is None:
            return True
        found = attributes.get(self.key)
        if found is None:
            return False
        if self.regex is not None:
            # `re` remembers what it compiled.
            return re.fullmatch(self.regex, found) is not None
        return self.value is None or found == self.value
