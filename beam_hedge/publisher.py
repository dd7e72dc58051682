"""The hedging publisher: takes batches, gives futures, bounds what is out, drains and closes."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from beam_hedge.attempts import CANCELLATION_GRACE
from beam_hedge.batch import seal
from beam_hedge.channel_factory import make_channel_factory
from beam_hedge.channels import Channels
from beam_hedge.connection import lag_patience
from beam_hedge.dispatcher import Dispatcher
from beam_hedge.engine import join_engine
from beam_hedge.errors import EngineDiedError, InvalidSettingError, PublisherClosedError, WrongThreadError
from beam_hedge.flow_control import FlowController, Permits
from beam_hedge.policy import Policy
from beam_hedge.publish_futures import PublishFutures
from beam_hedge.publisher_config import make_config
from beam_hedge.settings import DEFAULT_CONNECTIONS, DEFAULT_FLOW_CONTROL, HedgingSettings, RetrySettings
from beam_hedge.token_bucket import make_token_bucket
from beam_hedge.topics import parse_topic

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable, Iterable

    from google.api_core.client_options import ClientOptions
    from google.auth.credentials import Credentials
    from google.cloud.pubsub_v1.types import PublishFlowControl
    from typing_extensions import Self

    from beam_hedge.batch import Batch
    from beam_hedge.connection_counts import ConnectionCounts
    from beam_hedge.message import MessageLike
    from beam_hedge.outcome import PublishOutcome
    from beam_hedge.token_bucket import TokenBucket


class HedgingPublisher:
    """Publishes batches, sends a second copy of those that are late, and takes whichever answer comes first.

    All batches of a publisher share its token bucket, connections and flow control. Safe for concurrent use.
    Close it, or use it as a context manager, which drains at its end, or cancels after Ctrl-C.

    Args:
        topic: The full name of the topic that `publish` sends to by default; `None` if each call names one.
        settings: When and how often to hedge; `None` publishes without hedging. Default `HedgingSettings()`.
        retry_settings: Deadlines and retries. Default `RetrySettings()`.
        flow_control: How much may be out at once, with google-cloud-pubsub's type. Default: `publish` waits
            while 10,000 messages or 100,000,000 bytes are out.
        connections: TCP connections, 1 to 8. Default 2: a hedge takes another one than its batch's live
            attempts.
        client_options: As for google-cloud-pubsub's `PublisherClient`, such as
            `{"api_endpoint": "europe-west1-pubsub.googleapis.com:443"}`.
        credentials: Default: application default credentials. None are sent to an emulator, which is used
            when the environment names one in `PUBSUB_EMULATOR_HOST`.
        token_bucket: A bucket to go on with. Default: a new one, as the settings say.
        enable_open_telemetry_tracing: Whether each batch is a span, with its attempts as spans below it.
            Default False, as in google-cloud-pubsub.

    Raises:
        InvalidSettingError: An argument is outside its limits, or the hedge delay is not shorter than the
            timeouts.
        ForkedProcessError: The process was forked while another publisher was open.
        google.auth.exceptions.DefaultCredentialsError: There are no credentials.

    Example:
        >>> from beam_hedge.testing import LocalPubSub
        >>> with LocalPubSub() as server, server.environment():
        ...     server.create_topic("projects/demo-project/topics/orders")
        ...     with HedgingPublisher("projects/demo-project/topics/orders") as publisher:
        ...         outcome = publisher.publish([b"first", b"second"]).result()
        >>> len(outcome.message_ids), outcome.attempts
        (2, 1)
    """

    def __init__(
        self,
        topic: str | None,
        settings: HedgingSettings | None = HedgingSettings(),  # noqa: B008 - frozen
        *,
        retry_settings: RetrySettings = RetrySettings(),  # noqa: B008 - frozen
        flow_control: PublishFlowControl = DEFAULT_FLOW_CONTROL,
        connections: int = DEFAULT_CONNECTIONS,
        client_options: ClientOptions | dict[str, Any] | None = None,
        credentials: Credentials | None = None,
        token_bucket: TokenBucket | None = None,
        enable_open_telemetry_tracing: bool = False,
    ) -> None:
        config = make_config(
            topic=topic,
            settings=settings,
            retry_settings=retry_settings,
            flow_control=flow_control,
            connections=connections,
            client_options=client_options,
            credentials=credentials,
            tracing=enable_open_telemetry_tracing,
        )
        self._topic = topic
        self._flow = FlowController(config.flow_control)
        self._bucket = token_bucket or make_token_bucket(config.settings)
        self._futures = PublishFutures()
        self._closed = False
        self._closing: asyncio.Task[None] | None = None
        make_channel = make_channel_factory(config.client_options, credentials)

        async def open_channels() -> Channels:
            return Channels(make_channel, connections, lag_patience(config.settings))

        self._engine = join_engine(self)
        try:
            self._channels = self._engine.run(open_channels)
        except BaseException:
            self._engine.leave(self)
            raise
        policy = Policy(self._engine.loop, self._channels, self._bucket, config.settings, config.retry_settings)
        self._dispatcher = Dispatcher(policy, self._engine, self._flow, self._futures, tracing=config.tracing)

    @property
    def token_bucket(self) -> TokenBucket:
        """The budget for hedges."""
        return self._bucket

    @property
    def connection_counts(self) -> ConnectionCounts:
        """What happened to the connections."""
        return self._channels.counts

    @property
    def usable(self) -> bool:
        """Whether it is open and its engine lives."""
        return self._engine.alive and not self._closed

    def publish(
        self, messages: Iterable[bytes | str | MessageLike], topic: str | None = None
    ) -> concurrent.futures.Future[PublishOutcome]:
        """Publishes messages as one batch: one request, and hedges and retries of that same request.

        Small batches of several threads that are found waiting together share a request; none is held back
        for that, each has its own outcome, and an error touches only those to blame.

        Args:
            messages: 1 to 1,000: bytes, text (sent as UTF-8), or Beam's or google-cloud-pubsub's
                `PubsubMessage`. They are copied: later changes have no effect.
            topic: A full name. Default: the publisher's topic.

        Returns:
            A future of the outcome, or of a `PublishError`. Cancelling it cancels all attempts, unless others
            wait for the same request, but not what the service has already. Callbacks run on the engine's
            thread, so they must not wait.

        Raises:
            InvalidMessageError: A message, or the whole batch, breaks one of Pub/Sub's limits. Nothing is
                sent.
            InvalidSettingError: The topic is not a full name.
            PublisherClosedError: The publisher is closed.
            WrongThreadError: This is a callback of such a future, and flow control would make it wait for
                ever.
            FlowControlLimitError: google-cloud-pubsub's; flow control is at its limit and set to raise.
        """
        if topic is not None:
            parse_topic(topic)
        topic = topic or self._topic
        if topic is None:
            raise InvalidSettingError("topic", topic, "named: this publisher has no topic of its own")
        return self.publish_batch(seal(topic, messages), may_share=True)

    def publish_batch(
        self, batch: Batch, *, may_share: bool = False
    ) -> concurrent.futures.Future[PublishOutcome]:
        """Publishes a sealed batch; see `publish`. It has a request of its own unless it may share."""
        self._engine.check_process()
        if self._closed:
            raise PublisherClosedError
        permits = Permits(batch.messages, len(batch.request))
        try:
            self._flow.acquire(permits, may_wait=not self._engine.is_current_thread)
            return self._dispatcher.accept(batch, permits, may_share=may_share)
        except BaseException:
            # Also Ctrl-C, wherever it comes.
            self._flow.release(permits)
            raise

    def close(self, timeout: float | None = None) -> None:
        """Stops taking batches, waits for those that are out (hedging goes on) and closes the connections.

        Args:
            timeout: Seconds after which the rest is cancelled. Default: the retry settings' total timeout.

        Raises:
            WrongThreadError: This is a callback of a future, which would wait for itself.
        """
        self._engine.check_process()
        if self._engine.is_current_thread:
            raise WrongThreadError("close() waits for the engine's thread, so a callback cannot call it")
        self._closed = True
        self._flow.close(PublisherClosedError)
        if not self._flow.wait_idle(timeout):
            self._futures.cancel_all()
            self._flow.wait_idle(2 * CANCELLATION_GRACE)
        # An engine that has ended has closed the connections.
        with contextlib.suppress(EngineDiedError):
            self._engine.run(self._shut_down)
        self._engine.wait_ended()

    def close_soon(self) -> None:
        """Closes without waiting; for the engine's own thread. What is out is cancelled."""
        self._closed = True
        self._flow.close(PublisherClosedError)
        self._futures.cancel_all()
        self._engine.loop.create_task(self._shut_down())

    def call_later(self, delay: float, callback: Callable[..., object], *args: object) -> None:
        """Runs `callback(*args)` on the engine's thread after `delay` seconds.

        Raises:
            EngineDiedError: The thread has ended.
        """
        self._engine.submit(self._engine.loop.call_later, delay, callback, *args)

    def engine_died(self) -> None:
        """Fails all that is out; called by the engine when its thread ends unexpectedly."""
        self._flow.close(EngineDiedError, abandon=True)
        self._futures.fail_all()

    async def _shut_down(self) -> None:
        # Several threads may close it at once; all of them wait for the same end.
        if self._closing is None:
            self._closing = self._engine.loop.create_task(self._close_channels())
        await asyncio.shield(self._closing)

    async def _close_channels(self) -> None:
        try:
            await self._channels.close()
        finally:
            self._engine.leave(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_details: object) -> None:
        self.close(None if kind is None or issubclass(kind, Exception) else 0)

    def __repr__(self) -> str:
        state = "open" if self.usable else "closed"
        return f"<HedgingPublisher {self._topic} {state} {self._bucket!r} {self._channels!r} {self._flow!r}>"
