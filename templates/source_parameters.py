"""What a person is told about the parameters that say what to publish: of one pipeline each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from templates.kinds import PAIRS, READ_FILES, SUBSCRIPTION, TEXT, WRITE_FILE, choice
from templates.parameter import Parameter

if TYPE_CHECKING:
    from templates.kinds import Kind

_FILES = "Files"
_SOURCE = "Source"
_ATTRIBUTES = "Attributes"


def _json(label: str, help_text: str, kind: Kind) -> Parameter:
    return Parameter(label, help_text, kind, parent="input_format", shown_if=("json",))


SOURCE_PARAMETERS = {
    "input": Parameter(
        "Input files",
        "The text files to read: a path or a pattern such as gs://my-bucket/orders/*.jsonl. Files that end in "
        ".gz are decompressed. A pattern that matches no file stops the launch.",
        READ_FILES,
        _FILES,
    ),
    "input_format": Parameter(
        "Format of a line",
        "What a line is: text, which is published as it stands, or json, one JSON object in each line.",
        choice(text="Each line is a message", json="Each line is a JSON object"),
        _FILES,
    ),
    "attribute_fields": _json(
        "Fields that become attributes",
        "Names of fields with commas between them, such as country,kind. Each becomes an attribute of that "
        "name.",
        TEXT,
    ),
    "data_field": _json(
        "Field that is the data",
        "The field whose value is the message's data. If it is left empty, the data is the whole line.",
        TEXT,
    ),
    "outcomes": Parameter(
        "File of outcomes",
        "A file to write, with a line of JSON for each batch: how long it took, how many attempts it needed "
        "and which of them won. If it is left empty, no file is written.",
        WRITE_FILE,
        _FILES,
    ),
    "input_subscription": Parameter(
        "Input subscription",
        "Where messages come from, as projects/PROJECT/subscriptions/SUBSCRIPTION. The job needs a "
        "subscription that nothing else reads from.",
        SUBSCRIPTION,
        _SOURCE,
    ),
    "filter_key": Parameter(
        "Filter attribute",
        "Relay only messages that have this attribute. If it is left empty, all messages are relayed.",
        TEXT,
        _SOURCE,
    ),
    "filter_value": Parameter(
        "Filter value",
        "Relay only messages whose filter attribute is exactly this text. Not together with an expression.",
        TEXT,
        parent="filter_key",
    ),
    "filter_regex": Parameter(
        "Filter expression",
        "Relay only messages whose whole filter attribute matches this regular expression of Python, such as "
        "NL|BE.",
        TEXT,
        parent="filter_key",
    ),
    "rename_attributes": Parameter(
        "Attributes to rename",
        "New names of attributes, as old=new with commas between them, or as a JSON object. All are renamed at "
        "once.",
        PAIRS,
        _ATTRIBUTES,
    ),
    "add_attributes": Parameter(
        "Attributes to add",
        "Attributes that every message gets, as key=value with commas between them, or as a JSON object of "
        "texts.",
        PAIRS,
        _ATTRIBUTES,
    ),
    "ordering_key_attribute": Parameter(
        "Attribute for the ordering key",
        "Messages are published without their ordering keys. If this is given, the key is kept in that "
        "attribute.",
        TEXT,
        _ATTRIBUTES,
    ),
    "timestamp_attribute": Parameter(
        "Attribute for the time",
        "Attribute that gets the time at which the message was first published, in milliseconds since 1970.",
        TEXT,
        _ATTRIBUTES,
    ),
}
