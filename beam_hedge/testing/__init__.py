"""Tools for testing pipelines that publish: an embedded Pub/Sub and virtual time."""

from beam_hedge.testing.clock import FakeClock, FakeHandle
from beam_hedge.testing.connection import ConnectionState
from beam_hedge.testing.ledger import Ledger
from beam_hedge.testing.messages import SentMessage, StoredMessage
from beam_hedge.testing.profile import PROFILES, LatencyProfile
from beam_hedge.testing.record import RequestRecord
from beam_hedge.testing.refusal import RefusedError
from beam_hedge.testing.reply import CUT, NEVER, OK, Reply, Script
from beam_hedge.testing.server import LocalPubSub

__all__ = [
    "CUT",
    "NEVER",
    "OK",
    "PROFILES",
    "ConnectionState",
    "FakeClock",
    "FakeHandle",
    "LatencyProfile",
    "Ledger",
    "LocalPubSub",
    "RefusedError",
    "Reply",
    "RequestRecord",
    "Script",
    "SentMessage",
    "StoredMessage",
]
