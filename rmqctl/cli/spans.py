"""Spans of OpenTelemetry about a call of the program (``RMQCTL_OTEL=1``, setting ``otel``)."""

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final

from rmqctl.errors import UsageProblem
from rmqctl.telemetry import MISSING

if TYPE_CHECKING:
    from client.consumer.consumer import Consumer

    from .context import Cli

_NO_SDK: Final = (
    "spans need a distribution of OpenTelemetry's SDK, which says where they go: pip install "
    "opentelemetry-distro opentelemetry-exporter-otlp"
)
_EXIT_CODE: Final = "process.exit.code"
_FLUSH_MS: Final = 5_000


def begin_span(cli: "Cli") -> Callable[[int], None]:
    """Begin the span of this call; what is returned ends it with the exit code, and sends it.

    UsageProblem without OpenTelemetry, or without an SDK: it would be lost.
    """
    try:
        from opentelemetry import context, trace
    except ImportError:
        raise UsageProblem(MISSING) from None
    from opentelemetry.trace import SpanKind, Status, StatusCode

    from rmqctl import __version__

    provider: Any = _provider()
    words = cli.command_path.partition(" ")[2]
    tracer = provider.get_tracer("rmqctl", __version__)
    span = tracer.start_span(
        f"rmqctl {words}", kind=SpanKind.INTERNAL, attributes=_attributes(cli, words)
    )
    token = context.attach(trace.set_span_in_context(span))

    def end(code: int) -> None:
        span.set_attribute(_EXIT_CODE, code)
        if code:
            span.set_status(Status(StatusCode.ERROR, f"exit code {code}"))
        span.end()
        context.detach(token)
        provider.force_flush(_FLUSH_MS)

    return end


def add_spans(cli: "Cli", consumer: "Consumer") -> None:
    """Have a consumer of this call make spans, if they are wanted."""
    if cli.flag("otel"):
        from rmqctl.telemetry import instrument

        instrument(consumer, propagate=True)


def _provider() -> Any:
    """The tracer provider of the process; a distribution that is installed sets up the SDK by the
    variables OTEL_*. UsageProblem if there is none that keeps spans."""
    from opentelemetry import trace

    if not hasattr(trace.get_tracer_provider(), "force_flush"):
        for found in list(entry_points(group="opentelemetry_configurator"))[:1]:
            try:
                found.load()().configure()
            except Exception as error:  # of an exporter that is named and not installed
                raise UsageProblem(f"OpenTelemetry cannot be set up: {error}") from error
    provider = trace.get_tracer_provider()
    if not hasattr(provider, "force_flush"):
        raise UsageProblem(_NO_SDK)
    return provider


def _attributes(cli: "Cli", words: str) -> dict[str, Any]:
    found: dict[str, Any] = {"messaging.system": "rocketmq", "rmqctl.command": words}
    topics = cli.named.get("topic") or cli.named.get("topics")
    groups = cli.named.get("group") or cli.named.get("groups")
    for name, value in (
        ("messaging.destination.name", topics),
        ("messaging.consumer.group.name", groups),
    ):
        names = [value] if isinstance(value, str) else list(value or ())
        if len(names) == 1:
            found[name] = str(names[0])
    return found
