"""What all batches of one publisher share."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from beam_hedge.interfaces import Clock, Connections
    from beam_hedge.settings import HedgingSettings, RetrySettings
    from beam_hedge.token_bucket import TokenBucket


@dataclass(frozen=True)
class Policy:
    """Time, connections, the token bucket and the settings, as a batch's attempts need them."""

    clock: Clock
    connections: Connections
    bucket: TokenBucket
    settings: HedgingSettings | None
    retry: RetrySettings
    random: Callable[[], float] = random.random
