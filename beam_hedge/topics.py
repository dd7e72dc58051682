"""What a topic's name may look like."""

from __future__ import annotations

import re

from beam_hedge.errors import InvalidSettingError

# Domain-scoped projects ("example.com:project") are old but alive. That a topic has at least three
# characters is left to the service: emulators take shorter ones.
_PROJECT = r"(?:[a-z0-9][a-z0-9.-]*[a-z0-9]:)?[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_TOPIC_ID = r"[A-Za-z](?:[A-Za-z0-9._~+-]|%[0-9A-Fa-f]{2}){0,254}"
_MAX_LENGTH = 512
_TOPIC = re.compile(f"projects/(?P<project>{_PROJECT})/topics/(?P<topic_id>{_TOPIC_ID})")
_ALLOWED = (
    "'projects/PROJECT/topics/TOPIC', where TOPIC starts with a letter, does not start with 'goog' and has at "
    "most 255 letters, digits, dashes, underscores, periods, tildes, pluses or percent escapes"
)


def parse_topic(topic: object) -> tuple[str, str]:
    """Splits a full topic name into its project and its id.

    Args:
        topic: A name as in https://cloud.google.com/pubsub/docs/pubsub-basics#resource_names.

    Returns:
        The project and the topic's id.

    Raises:
        InvalidSettingError: It is not a full topic name.

    Example:
        >>> parse_topic("projects/my-project/topics/orders")
        ('my-project', 'orders')
    """
    match = _TOPIC.fullmatch(topic) if isinstance(topic, str) and len(topic) <= _MAX_LENGTH else None
    if match is None or match["topic_id"].startswith("goog"):
        raise InvalidSettingError("topic", topic, _ALLOWED)
    return match["project"], match["topic_id"]
