"""Spans of OpenTelemetry for producers and consumers: what they send, receive and process.

    from rmqctl import Producer, telemetry

    with Producer.open("demo-store", "order-service", create=True) as producer:
        telemetry.instrument(producer, propagate=True)

It needs the extra: ``pip install 'rmqctl[otel]'``. Which spans are kept, and where they go, is set
up by OpenTelemetry's SDK, as for any other library. docs/telemetry.md has the names of the spans
and their attributes. A client that is not instrumented does no work for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from client.consumer.consumer import Consumer
    from client.producer.producer import Producer

__all__ = ["instrument"]

MISSING: Final = "spans need OpenTelemetry: pip install 'rmqctl[otel]'"


def instrument(
    client: Producer | Consumer,
    *,
    propagate: bool = False,
    tracer_provider: TracerProvider | None = None,
) -> None:
    """Have a client make spans from now on. Twice is as once; the last call counts.

    ``client`` is a Producer or TransactionProducer (a span for each attempt to send), a
    PushConsumer (for each call of the listener, which runs in it) or a consumer that pulls (for
    each pull that brought messages).

    With ``propagate`` a producer puts the properties of the program's propagators, ``traceparent``
    by default, into the messages that it sends, and a consumer links its spans to the spans that
    these name. ``tracer_provider`` None is the program's own. Raises ImportError, with what to
    install, where OpenTelemetry is missing; TypeError for anything but such a client.
    """
    from client.consumer.consumer import Consumer
    from client.producer.producer import Producer
    from client.push.push_consumer import PushConsumer

    try:
        from opentelemetry import trace

        from client.telemetry.spans import ProcessSpans, ReceiveSpans, SendSpans
    except ImportError as error:
        raise ImportError(MISSING) from error
    from rmqctl import __version__

    if not isinstance(client, Producer | Consumer):
        raise TypeError(f"{client!r} is neither a producer nor a consumer")
    _forget(client)
    tracer = trace.get_tracer("rmqctl", __version__, tracer_provider)
    if isinstance(client, Producer):
        client.send_message_hooks.append(SendSpans(tracer, propagate=propagate))
    elif isinstance(client, PushConsumer):
        model = client.config.message_model.name.lower()
        client.consume_hooks.append(ProcessSpans(tracer, propagate=propagate, model=model))
    else:
        client.filter_message_hooks.append(ReceiveSpans(tracer, propagate=propagate))


def _forget(client: Producer | Consumer) -> None:
    """Take the hooks out that an earlier call has added."""
    for name in ("send_message_hooks", "consume_hooks", "filter_message_hooks"):
        hooks = getattr(client, name, [])
        hooks[:] = [hook for hook in hooks if type(hook).__module__ != "client.telemetry.spans"]
