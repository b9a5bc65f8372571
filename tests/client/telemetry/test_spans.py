"""Spans of OpenTelemetry, made by its own SDK: names, attributes, parents, links."""

import os
import signal
import subprocess
import sys

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from rmqctl import (
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    ConsumeOrderlyStatus,
    ConsumerConfig,
    Message,
    Producer,
    ProducerConfig,
    PullConsumer,
    PushConsumer,
    split_batch,
    telemetry,
)
from storage.config import SMALL_STORE
from tests.support.cli import ROOT, call


@pytest.fixture
def spans():
    """A provider of its own, and what it has exported."""
    provider = TracerProvider()
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield provider, exporter.get_finished_spans
    provider.shutdown()


@pytest.fixture
def broker(tmp_path):
    create_store(tmp_path / "s", SMALL_STORE)
    with EmbeddedBroker.open(tmp_path / "s") as broker:
        yield broker


def consume(broker, group, spans, listener, *, orderly=False, propagate=True, stops, **config):
    """Run an instrumented consumer until ``stops`` says that it has seen enough."""
    chosen = ConsumerConfig(consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, **config)
    consumer = PushConsumer(group, brokers=[broker], config=chosen)
    consumer.subscribe("Orders")
    if orderly:
        consumer.register_message_listener_orderly(listener)
    else:
        consumer.register_message_listener(listener)
    telemetry.instrument(consumer, propagate=propagate, tracer_provider=spans[0])
    with consumer:
        assert stops.wait(30)


def test_a_send_is_a_span_of_its_caller_and_its_message_names_it(broker, spans):
    provider, finished = spans
    with Producer("shop", brokers=[broker]) as producer:
        telemetry.instrument(producer, propagate=True, tracer_provider=provider)
        with provider.get_tracer("test").start_as_current_span("order") as order:
            result = producer.send(Message("Orders", b"ann 30", tags="new", keys=["k1", "k2"]))
    sent = next(span for span in finished() if span.name == "publish Orders")
    assert sent.kind is SpanKind.PRODUCER
    assert sent.parent.span_id == order.get_span_context().span_id
    assert sent.status.status_code is StatusCode.UNSET
    attributes = dict(sent.attributes)
    assert attributes.pop("messaging.client.id")
    assert attributes == {
        "messaging.system": "rocketmq",
        "messaging.operation.name": "publish",
        "messaging.operation.type": "send",
        "messaging.destination.name": "Orders",
        "messaging.destination.partition.id": str(result.message_queue.queue_id),
        "messaging.message.id": result.msg_id,
        "messaging.message.body.size": 6,
        "rocketmq.message.type": "normal",
        "rocketmq.message.tag": "new",
        "rocketmq.message.keys": ("k1", "k2"),
    }
    (stored,) = broker.query_unique("Orders", result.msg_id)
    context = sent.get_span_context()
    named = f"00-{context.trace_id:032x}-{context.span_id:016x}-"
    assert stored.properties["traceparent"].startswith(named)


def test_a_batch_is_one_span_and_without_propagation_messages_stay_as_they_are(broker, spans):
    provider, finished = spans
    with Producer("shop", brokers=[broker]) as producer:
        telemetry.instrument(producer, tracer_provider=provider)
        telemetry.instrument(producer, tracer_provider=provider)  # twice is as once
        result = producer.send([Message("Orders", b"a"), Message("Orders", b"b")])
    (sent,) = finished()
    assert sent.attributes["messaging.batch.message_count"] == 2
    stored = broker.query_unique("Orders", result.msg_id.split(",")[0])
    assert not {"traceparent", "tracestate"} & stored[0].properties.keys()


def test_a_send_that_fails_is_a_span_with_the_error(broker, spans):
    provider, finished = spans
    config = ProducerConfig(retry_times_when_send_failed=0)
    with Producer("shop", brokers=[broker], config=config) as producer:
        telemetry.instrument(producer, tracer_provider=provider)
        queue = producer.send(Message("Orders", b"a")).message_queue
        broker.update_topic(broker.topic("Orders")._replace(perm=4))
        with pytest.raises(Exception, match="Orders"):  # the broker's: the queue is known
            producer.send(Message("Orders", b"b"), queue=queue)
    failed = finished()[-1]
    assert failed.status.status_code is StatusCode.ERROR
    assert failed.attributes["error.type"]
    assert "messaging.message.id" not in failed.attributes


def test_a_listener_runs_in_the_span_of_its_batch_which_links_to_the_sends(broker, spans):
    import threading

    provider, finished = spans
    with Producer("shop", brokers=[broker]) as producer:
        telemetry.instrument(producer, propagate=True, tracer_provider=provider)
        queue = producer.fetch_publish_message_queues("Orders")[0]
        ids = [producer.send(Message("Orders", b"%d" % n), queue=queue).msg_id for n in range(3)]
    sends = {span.attributes["messaging.message.id"]: span for span in finished()}
    assert sends.keys() == set(ids)
    seen, stop = [], threading.Event()

    def listen(messages, context):
        current = trace.get_current_span().get_span_context().span_id
        seen.append((current, [message.msg_id for message in messages]))
        if sum(len(found) for _, found in seen) >= 3:
            stop.set()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consume(broker, "billing", spans, listen, stops=stop, consume_message_batch_max_size=3)
    made = {s.context.span_id: s for s in finished() if s.name == "process Orders"}
    assert made.keys() == {current for current, _ in seen}
    for current, found in seen:
        span = made[current]
        assert span.kind is SpanKind.CONSUMER
        assert span.attributes["messaging.operation.type"] == "process"
        assert span.attributes["messaging.consumer.group.name"] == "billing"
        assert span.attributes["rocketmq.consumption_model"] == "clustering"
        if len(found) > 1:
            assert span.attributes["messaging.batch.message_count"] == len(found)
        linked = {link.context.span_id for link in span.links}
        assert linked == {sends[one].context.span_id for one in found}
        assert span.status.status_code is StatusCode.UNSET


def test_a_listener_that_fails_and_an_orderly_one(broker, spans):
    import threading

    _, finished = spans
    broker.send(Message("Orders", b"a"))
    failed, done = threading.Event(), threading.Event()

    def fail(messages, context):
        failed.set()
        raise ValueError("no stock")

    consume(broker, "failing", spans, fail, stops=failed)

    def listen(messages, context):
        done.set()
        return ConsumeOrderlyStatus.SUCCESS

    consume(broker, "orderly", spans, listen, orderly=True, propagate=False, stops=done)
    first, last = (span for span in finished() if span.name == "process Orders")
    assert (first.attributes["error.type"], first.status.status_code) == (
        "EXCEPTION",
        StatusCode.ERROR,
    )
    assert first.links == last.links == ()
    assert last.status.status_code is StatusCode.UNSET
    assert last.attributes["messaging.consumer.group.name"] == "orderly"


def test_a_consumer_that_pulls(broker, spans):
    provider, finished = spans
    with Producer("shop", brokers=[broker]) as producer:
        telemetry.instrument(producer, propagate=True, tracer_provider=provider)
        producer.send(Message("Orders", b"a"))
    with PullConsumer("reports", brokers=[broker]) as consumer:
        telemetry.instrument(consumer, propagate=True, tracer_provider=provider)
        for queue in consumer.fetch_subscribe_message_queues("Orders"):
            consumer.pull(queue, 0)
    sent, received = finished()
    assert (received.name, received.kind) == ("receive Orders", SpanKind.CLIENT)
    assert received.links[0].context.span_id == sent.context.span_id


def test_other_objects_are_refused():
    with pytest.raises(TypeError, match="neither a producer nor a consumer"):
        telemetry.instrument(object())  # type: ignore[arg-type]


HIDDEN = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "opentelemetry":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden())
"""


def without_opentelemetry(code, *args, env=None):
    return subprocess.run(
        [sys.executable, "-c", HIDDEN + code, *map(str, args)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_without_the_extra_a_sentence_says_what_to_install(tmp_path):
    code = """
from rmqctl import Producer, telemetry
with Producer.open(sys.argv[1], "shop", create=True) as producer:
    telemetry.instrument(producer)
"""
    done = without_opentelemetry(code, tmp_path / "s")
    assert done.stderr.endswith(
        "ImportError: spans need OpenTelemetry: pip install 'rmqctl[otel]'\n"
    )
    run = "from rmqctl.app import main; sys.exit(main(sys.argv[1:]))"
    done = without_opentelemetry(run, "topic", "list", env={"RMQCTL_OTEL": "1"})
    assert done.returncode == 2
    assert "rmqctl: spans need OpenTelemetry: pip install 'rmqctl[otel]'" in done.stderr


CONFIGURED = """
import sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=open(sys.argv[1], "a"),
    formatter=lambda span: span.to_json(indent=None) + "\\n")))
trace.set_tracer_provider(provider)
from rmqctl.app import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.slow
def test_a_call_of_the_program_is_a_span_with_its_exit_code(broker, tmp_path):
    import json

    broker.send(Message("Orders", b"a"))
    broker.close()
    out = tmp_path / "spans"

    def rmqctl(*args):
        done = subprocess.run(
            [sys.executable, "-c", CONFIGURED, str(out), "-S", str(tmp_path / "s"), *args],
            env={**os.environ, "PYTHONPATH": str(ROOT), "RMQCTL_OTEL": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        found = [json.loads(line) for line in out.read_text().splitlines()]
        out.unlink()
        return done, found

    done, [span] = rmqctl(
        "offset", "reset", "-g", "g", "-t", "Orders", "--to-latest", "--new-group", "-y"
    )
    assert done.returncode == 0, done.stderr
    assert span["name"] == "rmqctl offset reset"
    assert span["attributes"]["process.exit.code"] == 0
    assert span["attributes"]["messaging.destination.name"] == "Orders"
    assert span["attributes"]["messaging.consumer.group.name"] == "g"
    done, [span] = rmqctl("topic", "describe", "nowhere")
    assert (done.returncode, span["attributes"]["process.exit.code"]) == (3, 3)
    assert span["status"]["status_code"] == "ERROR"
    done, [process, root] = rmqctl(
        "consume", "Orders", "-g", "h", "--from-where", "first", "-c", "1"
    )
    assert done.stdout == "a\n"
    assert (process["name"], root["name"]) == ("process Orders", "rmqctl consume")


SENDING = (
    CONFIGURED.replace(
        "trace.set_tracer_provider(provider)",
        """
def force_flush(timeout_ms):
    print("sending", flush=True)
    signal.sigtimedwait([], 30) if sys.argv[1] == "waits" else 1 / 0
provider.force_flush = force_flush
trace.set_tracer_provider(provider)
""",
    )
    .replace("import sys", "import signal, sys")
    .replace('open(sys.argv[1], "a")', "sys.stderr")
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (None, 0)], ids=str
)
def test_a_signal_or_an_error_while_the_span_is_sent(store_, number, code):
    how = "fails" if number is None else "waits"
    with subprocess.Popen(
        [sys.executable, "-c", SENDING, how, "-S", str(store_), "topic", "list", "-o", "jsonl"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "RMQCTL_OTEL": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        while process.stdout.readline() != "sending\n":
            assert process.poll() is None
        if number is not None:
            process.send_signal(number)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == code
    assert "Traceback" not in errors
    assert ("the trace of this call is not sent: division by zero" in errors) == (number is None)


@pytest.mark.slow
def test_without_an_exporter_set_up_it_is_refused_and_without_the_switch_nothing_is_loaded(store_):
    done = call("-S", store_, "topic", "list", env={"RMQCTL_OTEL": "1"})
    assert done.code == 2
    assert "spans need a distribution of OpenTelemetry's SDK" in done.err
    code = "from rmqctl.app import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    for words in (["topic", "list"], ["produce", "Orders", "/dev/null"]):
        shown = subprocess.run(
            [sys.executable, "-c", f"import sys; {code}", "-S", str(store_), *words],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        loaded = shown.stderr.split()
        assert not {m for m in loaded if "telemetry" in m}


@pytest.fixture
def store_(tmp_path):
    create_store(tmp_path / "s", SMALL_STORE)
    return tmp_path / "s"


def test_whole_batches_of_a_split_are_sent_with_their_context(spans, tmp_path):
    config = SMALL_STORE.with_(mapped_file_size_commit_log=16 << 20)
    create_store(tmp_path / "large", config)
    messages = [Message("Orders", b"x" * 100) for _ in range(20_000)]
    with (
        EmbeddedBroker.open(tmp_path / "large") as broker,
        Producer("g", brokers=[broker]) as producer,
    ):
        telemetry.instrument(producer, propagate=True, tracer_provider=spans[0])
        parts = list(split_batch(messages))
        assert len(parts) > 1
        sent = [producer.send(part).msg_id.count(",") + 1 for part in parts]
    assert sum(sent) == len(messages)
