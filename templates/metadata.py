"""The templates' metadata.json files, from the pipelines' options and what people are told about them.

`python -m templates.metadata` writes the files; a test says when they have to be written again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.options import HedgingOptions
from pipelines.relay_options import RelayOptions
from pipelines.text_options import TextOptions
from templates.sink_parameters import SINK_PARAMETERS
from templates.source_parameters import SOURCE_PARAMETERS

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

    from templates.parameter import Parameter

HERE = Path(__file__).resolve().parent
PARAMETERS = {**SOURCE_PARAMETERS, **SINK_PARAMETERS}


@dataclass(frozen=True)
class Template:
    """One flex template.

    Attributes:
        pipeline: Its pipeline's module in `pipelines`, and its folder here.
        name: Its name on the launch page.
        description: What it does.
        options: The classes that declare its parameters.
        required: The parameters that must be given.
        streaming: What Dataflow is told about streaming.
    """

    pipeline: str
    name: str
    description: str
    options: tuple[type[PipelineOptions], ...]
    required: tuple[str, ...]
    streaming: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """The file that `metadata` belongs in."""
        return HERE / self.pipeline / "metadata.json"

    def metadata(self) -> dict[str, Any]:
        """Returns what the metadata file says."""
        defaults = {
            name: default
            for options in self.options
            for name, default in options([]).get_all_options(current_only=True).items()
        }
        parameters = [
            _parameter(name, PARAMETERS[name], defaults[name], is_optional=name not in self.required)
            for name in sorted(defaults, key=lambda name: name not in self.required)
        ]
        return {
            "name": self.name,
            "description": self.description,
            "streaming": False,
            **self.streaming,
            "parameters": parameters,
        }

    def text(self) -> str:
        """Returns the metadata file."""
        return json.dumps(self.metadata(), indent=2) + "\n"


TEMPLATES = (
    Template(
        "text_to_pubsub",
        "Text files on Cloud Storage to Pub/Sub, hedged",
        "A batch pipeline that publishes each line of text files to a Pub/Sub topic. Batches that are late are "
        "sent a second time on another connection, and the first answer wins.",
        (TextOptions, HedgingOptions),
        ("input", "topic"),
    ),
    Template(
        "pubsub_to_pubsub",
        "Pub/Sub to Pub/Sub, hedged",
        "A streaming pipeline that relays messages from a Pub/Sub subscription to a topic, with their data and "
        "attributes. Batches that are late are sent a second time on another connection, and the first answer "
        "wins.",
        (RelayOptions, HedgingOptions),
        ("input_subscription", "topic"),
        {
            "streaming": True,
            "supportsAtLeastOnce": True,
            "supportsExactlyOnce": True,
            # Fewer duplicates for who does not choose. The other one is cheaper.
            "defaultStreamingMode": "EXACTLY_ONCE",
        },
    ),
)


def default_text(default: object) -> str:
    """Returns a default as it would be written on a command line."""
    if isinstance(default, bool):
        return str(default).lower()
    return str(default).removesuffix(".0") if isinstance(default, float) else str(default)


def _parameter(name: str, parameter: Parameter, default: object, *, is_optional: bool) -> dict[str, Any]:
    kind = parameter.kind
    found: dict[str, Any] = {
        "name": name,
        "label": parameter.label,
        "helpText": parameter.help_text,
        "paramType": kind.param_type,
    }
    if is_optional:
        found["isOptional"] = True
    if default is not None:
        found["defaultValue"] = default_text(default)
    if kind.pattern is not None:
        # A blank value of an optional parameter is the same as none.
        found["regexes"] = [rf"^(?:{kind.pattern}|\s*)$" if is_optional else f"^{kind.pattern}$"]
    if kind.choices:
        found["enumOptions"] = [{"value": value, "label": label} for value, label in kind.choices]
    if parameter.group is not None:
        found["groupName"] = parameter.group
    if parameter.parent is not None:
        found["parentName"] = parameter.parent
    if parameter.shown_if:
        found["parentTriggerValues"] = list(parameter.shown_if)
    return found


def main() -> None:
    """Writes the metadata file of each template."""
    for template in TEMPLATES:
        template.path.write_text(template.text(), encoding="utf-8")


if __name__ == "__main__":
    main()
