"""The options of the pipeline that relays from a subscription to a topic."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apache_beam.options.pipeline_options import PipelineOptions

from beam_hedge import InvalidSettingError
from pipelines.attributes import MAX_ATTRIBUTES, Changes, additions, name, renames
from pipelines.flags import add_flag
from pipelines.message_filter import MessageFilter
from pipelines.values import checked, regex

if TYPE_CHECKING:
    import argparse

_SUBSCRIPTION = re.compile(r"projects/[a-z0-9:.-]+/subscriptions/[A-Za-z][A-Za-z0-9._~+%-]{2,254}")


class RelayOptions(PipelineOptions):
    """Where messages come from, which of them are relayed, and what their attributes become.

    Args:
        flags: The command line. Default: that of the process.

    Example:
        >>> RelayOptions(["--filter_key=country", "--filter_value=NL"]).filter_value
        'NL'
    """

    @classmethod
    def _add_argparse_args(cls, parser: argparse.ArgumentParser) -> None:
        add_flag(
            parser,
            "input_subscription",
            checked(subscription),
            "Where messages come from: projects/PROJECT/subscriptions/SUBSCRIPTION.",
        )
        add_flag(parser, "filter_key", str, "Relay only messages that have this attribute.")
        add_flag(parser, "filter_value", str, "Relay only messages whose attribute filter_key is this text.")
        add_flag(
            parser,
            "filter_regex",
            regex,
            "Relay only messages whose whole attribute filter_key matches this regular expression.",
        )
        add_flag(
            parser,
            "rename_attributes",
            checked(renames),
            "New names of attributes: old=new,old=new or a JSON object.",
        )
        add_flag(
            parser,
            "add_attributes",
            checked(additions),
            "Attributes that each message gets: key=value,key=value or a JSON object.",
        )
        add_flag(
            parser,
            "ordering_key_attribute",
            checked(name),
            "Attribute that keeps the ordering key, which a relayed message does not have.",
        )
        add_flag(
            parser,
            "timestamp_attribute",
            checked(name),
            "Attribute for the time of the first publishing, in ms since the epoch.",
        )

    def message_filter(self) -> MessageFilter:
        """Returns what tells which messages are relayed.

        Raises:
            InvalidSettingError: Flags do not go together.
        """
        return MessageFilter(self.filter_key, self.filter_value, self.filter_regex)

    def changes(self, id_label: str | None) -> Changes:
        """Returns what becomes of attributes.

        Args:
            id_label: Attribute for an id, which a renamed attribute may bring, but not an added one: all
                messages would have the same.

        Raises:
            InvalidSettingError: Two flags set one attribute, or together they set too many.
        """
        renamed = renames(self.rename_attributes) if self.rename_attributes is not None else {}
        added = additions(self.add_attributes) if self.add_attributes is not None else {}
        set_by = {new: "rename_attributes" for new in renamed.values() if new != id_label}
        for flag, names in (
            ("add_attributes", tuple(added)),
            ("id_label", (id_label,)),
            ("ordering_key_attribute", (self.ordering_key_attribute,)),
            ("timestamp_attribute", (self.timestamp_attribute,)),
        ):
            for each in filter(None, names):
                if each in set_by:
                    value = id_label if flag == "id_label" else getattr(self, flag)
                    raise InvalidSettingError(
                        flag, value, f"without the attribute {each!r}, which {set_by[each]} sets"
                    )
                set_by[each] = flag
        always = [each for each, flag in set_by.items() if flag != "rename_attributes"]
        if len(always) > MAX_ATTRIBUTES:
            raise InvalidSettingError(
                "add_attributes", self.add_attributes, f"fewer: {len(always)} attributes would be set"
            )
        return Changes(renamed, added)


def subscription(text: str) -> str:
    """Reads the full name of a subscription.

    Raises:
        ValueError: It is none.
    """
    if not _SUBSCRIPTION.fullmatch(text):
        raise ValueError("must be projects/PROJECT/subscriptions/SUBSCRIPTION")
    return text
