"""Half messages, their ends and checks: as a broker of 4.9 stores them."""

from __future__ import annotations

import pytest

from broker.api.pull import PullRequest
from broker.api.send import SendOptions
from broker.api.transactions import EndTransactionRequest, LocalTransactionState
from broker.config import BrokerConfig
from broker.errors import BrokerSystemError, NoPermissionError
from broker.send.message_builder import stored_again
from broker.send.send import prepared
from broker.transaction.check import TransactionCheckService
from storage.format.message import (
    SCHEDULE_TOPIC,
    TRANS_CHECK_MAX_TIME_TOPIC,
    TRANS_HALF_TOPIC,
    TRANS_OP_HALF_TOPIC,
    Message,
)
from storage.format.message_id import parse_offset_msg_id
from storage.format.properties import MAX_PROPERTIES_LENGTH
from storage.format.sys_flag import MessageSysFlag
from storage.readonly import StoreView
from tests.support import golden
from tests.support.same_records import all_messages, content, only

START = 1_700_000_000_000
COMMIT = LocalTransactionState.COMMIT_MESSAGE
ROLLBACK = LocalTransactionState.ROLLBACK_MESSAGE
UNKNOW = LocalTransactionState.UNKNOW
PREPARED = SendOptions(sys_flag=MessageSysFlag.TRANSACTION_PREPARED_TYPE)
CHECKS = ("CID_RMQ_SYS_TRANS", TRANS_HALF_TOPIC)
OPS = ("CID_RMQ_SYS_TRANS", TRANS_OP_HALF_TOPIC)


class Bench:
    """A broker, a clock, and a producer that answers questions as its plans say."""

    def __init__(self, open_broker, config=None):
        self.now = START
        self.config = config or BrokerConfig()
        self.broker = open_broker(self.config, clock=lambda: self.now)
        self.asked = []
        self.plans = {}
        self.alive = True
        self.settled = 0
        store = self.broker.store
        self.checks = TransactionCheckService(
            self.config,
            self.broker._topics,
            self.broker._progress,
            view=lambda: store.view,
            put=store.put,
            ask=self.ask,
            now=lambda: self.now,
            file_reserved_ms=72 * 3_600_000,
            settle=self.settle,
        )

    def settle(self):
        self.settled += 1

    def prepare(self, body, group="p", **properties):
        properties = {"TRAN_MSG": "true", "PGROUP": group, **properties}
        message = Message("T", body, tags="A", properties=properties)
        return self.broker.send(message, 1, PREPARED)

    def end(self, sent, state, group="p"):
        _, place = parse_offset_msg_id(sent.offset_msg_id)
        self.broker.end_transaction(
            EndTransactionRequest(group, sent.queue_offset, place, state, msg_id=sent.msg_id)
        )

    def ask(self, question):
        self.asked.append(question)
        state = self.plans.get(question.message.body)
        if state is not None:
            request = EndTransactionRequest(
                question.producer_group,
                question.transaction_state_table_offset,
                question.commitlog_offset,
                state,
                from_check=True,
            )
            self.broker.end_transaction(request)
        return self.alive

    def check(self, later_ms=60_000):
        self.now += later_ms
        self.checks.check()

    def messages(self, topic, queue_id=0):
        view = self.broker.view
        end = view.max_offset_in_queue(topic, queue_id)
        return [
            message
            for offset in range(end)
            for message in view.get_message(topic, queue_id, offset, 1).messages
        ]

    def offsets(self):
        known = self.broker.consumer_offsets()
        return known.get(CHECKS, {}).get(0), known.get(OPS, {}).get(0)

    def bodies(self, topic="T", queue_id=1):
        return [message.body for message in self.messages(topic, queue_id)]


@pytest.fixture
def bench(open_broker):
    return Bench(open_broker)


def test_a_half_message_waits_where_no_consumer_sees_it(bench):
    sent = bench.prepare(b"x")
    assert sent.message_queue.topic == "T"
    half = only(bench.messages(TRANS_HALF_TOPIC))
    assert (half.sys_flag, half.queue_offset, half.tags) == (0, sent.queue_offset, "A")
    assert half.get_property("REAL_TOPIC") == "T"
    assert half.get_property("REAL_QID") == "1"
    assert half.get_property("WAIT") == "true"
    assert bench.bodies() == []
    assert bench.broker.query_unique("T", sent.msg_id) == []


def test_a_committed_message_is_stored_for_its_real_queue_and_marked_ended(bench):
    sent = bench.prepare(b"x")
    half = only(bench.messages(TRANS_HALF_TOPIC))
    bench.now += 5
    bench.end(sent, COMMIT)
    message = only(bench.messages("T", 1))
    assert message.sys_flag == MessageSysFlag.TRANSACTION_COMMIT_TYPE
    assert message.prepared_transaction_offset == half.commitlog_offset
    assert (message.msg_id, message.born_timestamp) == (sent.msg_id, START)
    assert message.property_bytes == half.property_bytes
    op = only(bench.messages(TRANS_OP_HALF_TOPIC))
    assert (op.body, op.tags, op.properties) == (b"0", "d", {"TAGS": "d", "WAIT": "true"})
    assert op.born_timestamp == START + 5
    [pulled] = bench.broker.pull(PullRequest("g", "T", 1, 0, expression="A")).messages
    assert pulled.body == b"x"


def test_a_rolled_back_message_is_never_seen(bench):
    sent = bench.prepare(b"x")
    bench.end(sent, ROLLBACK)
    assert bench.bodies() == []
    assert only(bench.messages(TRANS_OP_HALF_TOPIC)).body == b"0"


def test_an_unknown_state_changes_nothing(bench):
    sent = bench.prepare(b"x")
    end = bench.broker.view.log_max_offset()
    bench.end(sent, UNKNOW)
    assert bench.broker.view.log_max_offset() == end


def test_only_the_half_message_that_is_meant_can_be_ended(bench, open_broker):
    bench.broker.send(Message("T", b"plain"), 1)
    sent = bench.prepare(b"x")
    with pytest.raises(BrokerSystemError, match="group p, not other"):
        bench.end(sent, COMMIT, group="other")
    with pytest.raises(BrokerSystemError, match="queue offset 0, not 7"):
        bench.end(sent._replace(queue_offset=7), COMMIT)
    with pytest.raises(BrokerSystemError, match="no half message begins at 1 "):
        bench.end(sent._replace(offset_msg_id="7F00000100002A9F0000000000000001"), COMMIT)
    with pytest.raises(BrokerSystemError, match="no half message begins at 0 "):
        bench.end(sent._replace(offset_msg_id="7F00000100002A9F0000000000000000"), COMMIT)
    with pytest.raises(NoPermissionError, match="reading only"):
        open_broker(read_only=True).end_transaction(EndTransactionRequest("p", 0, 0, COMMIT))
    assert bench.bodies() == [b"plain"]


def test_old_clients_retry_a_transaction_message_without_a_transaction(bench):
    properties = {"TRAN_MSG": "true", "PGROUP": "p", "DELAY": "3"}
    message = Message("%RETRY%g", b"x", properties=properties)
    bench.broker.send(message, 0, SendOptions(reconsume_times=1))
    assert len(bench.messages(SCHEDULE_TOPIC, 2)) == 1
    assert bench.messages(TRANS_HALF_TOPIC) == []


# -- checks ------------------------------------------------------------------------------------


def test_a_producer_that_is_silent_is_asked_and_its_answer_ends_the_transaction(bench):
    bench.prepare(b"commit")
    bench.prepare(b"rollback")
    bench.plans = {b"commit": COMMIT, b"rollback": ROLLBACK}
    bench.check()
    assert [question.message.body for question in bench.asked] == [b"commit", b"rollback"]
    question = bench.asked[0]
    assert (question.message.topic, question.message.queue_id) == ("T", 1)
    assert question.message.get_property("TRANSACTION_CHECK_TIMES") == "1"
    assert question.msg_id == question.transaction_id == question.message.msg_id
    assert question.transaction_state_table_offset == 2
    assert bench.bodies() == [b"commit"]
    assert bench.offsets() == (3, 1)  # the second answer came after its copy's turn
    bench.check()
    assert len(bench.asked) == 2
    assert bench.offsets() == (4, 2)


def test_a_check_keeps_everything_of_a_half_message_but_its_flag(bench):
    """RocketMQ's TransactionalMessageBridge.renewHalfMessageInner copies no flag."""
    half = {"TRAN_MSG": "true", "PGROUP": "p"}
    bench.broker.send(Message("T", b"x", keys="k", flag=7, properties=half), 1, PREPARED)
    bench.check()
    first, second = map(content, bench.messages(TRANS_HALF_TOPIC))
    assert (first["flag"], second["flag"]) == (7, 0)
    changed = {"flag", "properties", "store_size"}
    assert {name for name in first if first[name] != second[name]} == changed
    assert second["properties"] == {**first["properties"], "TRANSACTION_CHECK_TIMES": "1"}


def test_ended_transactions_are_passed_over(bench):
    for n in range(100):
        sent = bench.prepare(b"%d" % n)
        bench.end(sent, (COMMIT, ROLLBACK)[n % 2])
    bench.check()
    assert bench.asked == []
    assert bench.offsets() == (100, 100)
    assert len(bench.messages(TRANS_HALF_TOPIC)) == 100


def change_record(bench, message, position, value):
    """Change one byte of a record in the log."""
    log = bench.broker.store.root / "commitlog"
    with min(log.iterdir()).open("r+b") as file:
        file.seek(message.commitlog_offset + position)
        file.write(bytes([value]))


def test_an_op_message_that_seems_to_be_compressed_ends_its_transaction(bench):
    for body in (b"x", b"y"):
        sent = bench.prepare(body)
        bench.end(sent, COMMIT)
    bench.prepare(b"silent")
    change_record(bench, bench.messages(TRANS_OP_HALF_TOPIC)[0], 39, 1)
    bench.check()
    assert [question.message.body for question in bench.asked] == [b"silent"]
    assert bench.offsets() == (3, 2)


def test_an_op_message_that_names_nothing_is_named_and_passed_over(bench, caplog):
    sent = bench.prepare(b"x")
    bench.end(sent, COMMIT)
    op = only(bench.messages(TRANS_OP_HALF_TOPIC))
    op.stored_body = b"?"
    bench.broker.store.put(prepared([stored_again(op, TRANS_OP_HALF_TOPIC, 0, op.property_bytes)]))
    bench.prepare(b"silent")
    bench.check()
    assert [question.message.body for question in bench.asked] == [b"silent"]
    assert bench.offsets() == (2, 2)
    assert "an op message names no half message, and is passed over" in caplog.text


def test_a_young_half_message_is_not_checked(bench):
    bench.prepare(b"x")
    bench.check(6_000)
    assert bench.asked == []
    assert bench.offsets() == (None, None)
    bench.check(1)
    assert len(bench.asked) == 1


def test_rounds_come_every_minute(bench):
    bench.prepare(b"x")
    assert bench.checks.tick(bench.now) == START + 60_000
    assert bench.checks.tick(bench.now + 59_999) == START + 60_000
    bench.now += 60_000
    assert bench.asked == []
    assert bench.checks.tick(bench.now) == START + 120_000
    assert len(bench.asked) == 1
    assert bench.checks.tick(bench.now - 3_600_000) <= bench.now - 3_540_000


def test_after_fifteen_checks_a_half_message_is_put_aside(bench):
    bench.prepare(b"x")
    for _ in range(15):
        bench.check()
    assert len(bench.asked) == 15
    times = [m.get_property("TRANSACTION_CHECK_TIMES") for m in bench.messages(TRANS_HALF_TOPIC)]
    assert times == [None, *map(str, range(1, 16))]
    bench.check()
    assert len(bench.asked) == 15
    aside = only(bench.messages(TRANS_CHECK_MAX_TIME_TOPIC))
    assert aside.get_property("TRANSACTION_CHECK_TIMES") == "15"
    assert aside.get_property("REAL_TOPIC") == "T"
    assert bench.broker.topic(TRANS_CHECK_MAX_TIME_TOPIC).read_queue_nums == 1
    bench.check()
    assert len(bench.messages(TRANS_CHECK_MAX_TIME_TOPIC)) == 1


@pytest.mark.parametrize(("late_ms", "asked"), [(-1, 1), (0, 1), (1, 0), (3_600_000, 0)])
def test_a_half_message_older_than_messages_are_kept_is_put_aside_unasked(bench, late_ms, asked):
    bench.prepare(b"x")
    born = only(bench.messages(TRANS_HALF_TOPIC)).born_timestamp
    bench.check(born - bench.now + 72 * 3_600_000 + late_ms)
    assert len(bench.asked) == asked
    assert len(bench.messages(TRANS_CHECK_MAX_TIME_TOPIC)) == 1 - asked


def test_checks_count_also_while_no_producer_lives(bench, caplog):
    bench.prepare(b"x")
    bench.alive = False
    bench.check()
    assert "no live producer of group p" in caplog.text
    assert len(bench.messages(TRANS_HALF_TOPIC)) == 2


def test_a_half_message_that_waits_for_its_immunity_lets_others_be_checked(bench):
    immune = bench.prepare(b"immune", CHECK_IMMUNITY_TIME_IN_SECONDS="100")
    bench.prepare(b"other")
    bench.check()
    assert [question.message.body for question in bench.asked] == [b"other"]
    again = bench.messages(TRANS_HALF_TOPIC)[2]
    assert again.body == b"immune"
    assert again.get_property("TRAN_PREPARED_QUEUE_OFFSET") == "0"
    bench.end(immune, COMMIT)  # by its first offset
    bench.check()
    bench.check()
    assert [question.message.body for question in bench.asked] == [b"other"] * 3
    assert bench.bodies() == [b"immune"]


ONE_CHECK_MORE = len(b"\x02TRANSACTION_CHECK_TIMES\x011")


def prepare_with_room(bench, body, room, **properties):
    """Store a half message whose properties leave ``room`` bytes of the largest length."""
    bench.prepare(b"measured", pad="x", **properties)
    size = len(bench.messages(TRANS_HALF_TOPIC)[-1].property_bytes)
    pad = "x" * (1 + MAX_PROPERTIES_LENGTH - size - room)
    sent = bench.prepare(body, pad=pad, **properties)
    half = bench.messages(TRANS_HALF_TOPIC)[-1]
    assert len(half.property_bytes) == MAX_PROPERTIES_LENGTH - room
    return sent, half


@pytest.mark.parametrize("room", [0, ONE_CHECK_MORE - 1])
@pytest.mark.parametrize("immune", [{}, {"CHECK_IMMUNITY_TIME_IN_SECONDS": "100"}])
def test_a_half_message_without_room_for_a_check_is_put_aside_and_the_next_is_asked_about(
    bench, caplog, room, immune
):
    sent, half = prepare_with_room(bench, b"full", room, **immune)
    bench.prepare(b"behind")
    bench.check()
    bench.check()
    bench.check()
    assert {b"measured", b"behind"} == {question.message.body for question in bench.asked}
    aside = only(bench.messages(TRANS_CHECK_MAX_TIME_TOPIC))
    assert (aside.body, aside.property_bytes) == (b"full", half.property_bytes)
    assert f"half message {sent.msg_id} of p cannot be checked again: the properties" in caplog.text
    bench.end(sent, COMMIT)
    assert bench.bodies() == [b"full"], "its producer can commit it all the same"


def test_a_half_message_is_asked_about_until_its_properties_have_no_room_for_the_count(bench):
    prepare_with_room(bench, b"full", ONE_CHECK_MORE)
    for _ in range(11):
        bench.check()
    asked = [question.message.body for question in bench.asked]
    assert asked.count(b"full") == 9
    aside = only(bench.messages(TRANS_CHECK_MAX_TIME_TOPIC))
    assert aside.get_property("TRANSACTION_CHECK_TIMES") == "9"


def test_an_old_half_message_without_room_for_a_check_is_put_aside(bench):
    prepare_with_room(bench, b"full", 0)
    bench.check(73 * 3_600_000)
    aside = bench.messages(TRANS_CHECK_MAX_TIME_TOPIC)
    assert [message.body for message in aside] == [b"measured", b"full"]


def test_a_round_that_begins_anew_puts_no_half_message_aside_again(bench):
    for body in (b"full 1", b"full 2"):
        prepare_with_room(bench, body, 0)
    bench.check()
    bench.broker._progress.move(CHECKS[0], {(TRANS_HALF_TOPIC, 0): 0, (TRANS_OP_HALF_TOPIC, 0): 0})
    bench.check()
    aside = bench.messages(TRANS_CHECK_MAX_TIME_TOPIC)
    assert [message.body for message in aside] == [b"full 1", b"full 2"]


def put_java_half(bench, body, value):
    """Store a half message as a Java broker does, which takes U+0001 in a value."""
    sent = bench.prepare(body, other="?")
    half = bench.messages(TRANS_HALF_TOPIC)[-1]
    encoded = half.property_bytes.replace(b"other\x01?", b"k\x01" + value)
    encoded = encoded.replace(sent.msg_id.encode(), sent.msg_id[::-1].encode())
    bench.end(sent, ROLLBACK)
    inner = stored_again(half, TRANS_HALF_TOPIC, 0, encoded)
    bench.broker.store.put(prepared([inner]))
    half = bench.messages(TRANS_HALF_TOPIC)[-1]
    assert half.property_bytes == encoded
    return half


def test_a_half_message_of_a_java_broker_with_a_separator_in_a_value_is_checked_and_committed(
    bench,
):
    half = put_java_half(bench, b"java", b"a\x01b")
    bench.prepare(b"behind")
    bench.plans[b"behind"] = COMMIT
    bench.check()
    assert [question.message.body for question in bench.asked] == [b"java", b"behind"]
    copy = bench.messages(TRANS_HALF_TOPIC)[-2]
    assert copy.property_bytes == half.property_bytes + b"\x02TRANSACTION_CHECK_TIMES\x011"
    place = half.queue_offset, half.commitlog_offset
    bench.broker.end_transaction(EndTransactionRequest("p", *place, COMMIT))
    assert bench.bodies() == [b"behind", b"java"]
    assert bench.messages("T", 1)[-1].property_bytes == half.property_bytes
    assert bench.messages("T", 1)[-1].get_property("k") == "a\x01b"


def test_an_immune_half_message_is_asked_about_when_its_time_is_over(bench):
    bench.prepare(b"immune", CHECK_IMMUNITY_TIME_IN_SECONDS="100")
    bench.check()
    assert bench.asked == []
    bench.check()
    assert only(bench.asked).message.body == b"immune"


def test_a_second_broker_goes_on_where_the_first_one_ended(bench, open_broker):
    sent = bench.prepare(b"a")
    bench.end(sent, COMMIT)
    bench.prepare(b"b")
    bench.check()
    bench.broker.close()
    other = Bench(open_broker)
    other.now = bench.now
    other.check()
    assert [question.message.body for question in other.asked] == [b"b"]


def test_a_half_message_that_names_no_real_queue_is_put_aside_unasked(bench):
    bench.prepare(b"x")
    (half,) = bench.messages(TRANS_HALF_TOPIC)
    properties = {name: value for name, value in half.properties.items() if name != "REAL_QID"}
    encoded = bench.broker._builder.encode(properties)
    bench.broker.store.put(prepared([stored_again(half, TRANS_HALF_TOPIC, 0, encoded)]))
    bench.check()
    bench.check()
    assert bench.asked == []
    assert [m.body for m in bench.messages(TRANS_CHECK_MAX_TIME_TOPIC)] == [b"x"]


@pytest.mark.parametrize("topic", ["../../outside", "a/b", "..", "a\0b"])
def test_a_half_message_for_what_can_be_no_topic_is_put_aside_unasked(bench, root, topic):
    bench.end(bench.prepare(b"x"), ROLLBACK)
    (half,) = bench.messages(TRANS_HALF_TOPIC)
    encoded = bench.broker._builder.encode({**half.properties, "REAL_TOPIC": topic})
    bench.broker.store.put(prepared([stored_again(half, TRANS_HALF_TOPIC, 0, encoded)]))
    damaged = bench.messages(TRANS_HALF_TOPIC)[1]
    request = EndTransactionRequest("p", damaged.queue_offset, damaged.commitlog_offset, COMMIT)
    with pytest.raises(BrokerSystemError, match="as its real topic"):
        bench.broker.end_transaction(request)
    before = {*root.parent.iterdir(), *(root / "consumequeue").iterdir()}
    bench.check()
    bench.check()
    assert bench.asked == []
    assert [m.body for m in bench.messages(TRANS_CHECK_MAX_TIME_TOPIC)] == [b"x"]
    after = {*root.parent.iterdir(), *(root / "consumequeue").iterdir()}
    assert after - before == {root / "consumequeue" / TRANS_CHECK_MAX_TIME_TOPIC}


@pytest.mark.parametrize("queue_id", ["2147483648", "9" * 19])
def test_a_half_message_for_what_can_be_no_queue_is_put_aside_unasked(bench, queue_id):
    bench.end(bench.prepare(b"x"), ROLLBACK)
    (half,) = bench.messages(TRANS_HALF_TOPIC)
    other = {"REAL_QID": queue_id, "UNIQ_KEY": "another"}
    encoded = bench.broker._builder.encode({**half.properties, **other})
    bench.broker.store.put(prepared([stored_again(half, TRANS_HALF_TOPIC, 0, encoded)]))
    damaged = bench.messages(TRANS_HALF_TOPIC)[1]
    request = EndTransactionRequest("p", damaged.queue_offset, damaged.commitlog_offset, COMMIT)
    with pytest.raises(BrokerSystemError, match="names no real topic"):
        bench.broker.end_transaction(request)
    bench.check()
    bench.check()
    assert bench.asked == []
    assert [m.body for m in bench.messages(TRANS_CHECK_MAX_TIME_TOPIC)] == [b"x"]


def test_what_another_checker_left_is_settled_where_a_round_begins_elsewhere(bench):
    bench.prepare(b"x")
    bench.check()
    assert bench.settled == 1
    bench.check()
    bench.check()
    assert bench.settled == 1, "it went on where it ended"
    bench.broker._progress.move(CHECKS[0], {(TRANS_HALF_TOPIC, 0): 0})
    bench.check()
    assert bench.settled == 2


def test_progress_behind_the_end_is_put_right(bench):
    bench.prepare(b"x")
    bench.broker._progress.move(CHECKS[0], {(TRANS_HALF_TOPIC, 0): 50, (TRANS_OP_HALF_TOPIC, 0): 9})
    bench.check()
    assert bench.offsets()[0] == 1
    bench.prepare(b"y")
    bench.check()
    assert only(bench.asked).message.body == b"y"


# -- what a real broker wrote ------------------------------------------------------------------


def test_the_records_of_the_same_transactions_are_those_of_the_real_broker(open_broker):
    """Each half message as it was sent, each end as it was asked for, checks at their times."""
    with StoreView.open(golden.store("transaction-4.9")) as view:
        real = all_messages(view)
    config = BrokerConfig(
        store_host="127.0.0.1:20911",
        transaction_timeout_ms=1_500,
        transaction_check_max=3,
        transaction_check_interval_ms=3_000,
    )
    bench = Bench(open_broker, config)
    plans = {
        "commit": COMMIT,
        "rollback": ROLLBACK,
        "check-commit": COMMIT,
        "check-rollback": ROLLBACK,
    }
    checked_at: list[int] = []
    for record in real:
        bench.now = record.store_timestamp
        if record.topic != TRANS_HALF_TOPIC:
            continue
        if record.get_property("TRANSACTION_CHECK_TIMES"):
            if not checked_at or record.store_timestamp - checked_at[-1] > 1_000:
                checked_at.append(bench.now)
                bench.check(0)
            continue
        send_as(bench, record)
        plan = record.properties["plan"]
        if plan in {"commit", "rollback"}:
            sent = bench.messages(TRANS_HALF_TOPIC)[-1]
            request = EndTransactionRequest(
                "g-txproducer", sent.queue_offset, sent.commitlog_offset, plans[plan]
            )
            bench.broker.end_transaction(request)
        elif plan.startswith("check"):
            bench.plans[record.body] = plans[plan]
        if len(checked_at) == 3 and not bench.messages(TRANS_CHECK_MAX_TIME_TOPIC):
            bench.check(0)
    assert sorted(map(same, all_messages(bench.broker.view)), key=repr) == sorted(
        map(same, real), key=repr
    )
    tables = golden.manifest("transaction-4.9")["consumerOffset"]["offsetTable"]
    bench.check(1_000)  # the pending one is too young
    half, op = bench.offsets()
    assert half == tables["RMQ_SYS_TRANS_HALF_TOPIC@CID_RMQ_SYS_TRANS"]["0"]
    assert op == tables["RMQ_SYS_TRANS_OP_HALF_TOPIC@CID_RMQ_SYS_TRANS"]["0"]


def send_as(bench, record):
    """Send a half message as its producer did."""
    properties = {
        name: value
        for name, value in record.properties.items()
        if name not in {"REAL_TOPIC", "REAL_QID", "CLUSTER"}
    }
    topic = record.get_property("REAL_TOPIC")
    message = Message(topic, record.stored_body, flag=record.flag, properties=properties)
    options = SendOptions(
        sys_flag=record.sys_flag | MessageSysFlag.TRANSACTION_PREPARED_TYPE,
        born_timestamp=record.born_timestamp,
        born_host=record.born_host,
    )
    bench.broker.send(message, int(record.get_property("REAL_QID")), options)


def same(record):
    """What must agree: all but times of op messages and places in the log."""
    found = content(record)
    found["prepared_transaction_offset"] = bool(found["prepared_transaction_offset"])
    if record.topic == TRANS_OP_HALF_TOPIC:
        found["born_timestamp"] = 0
    return found


def test_a_half_message_is_asked_about_after_the_clock_was_set_back(bench):
    bench.now += 3_600_000
    bench.broker.send(Message("T", b"from the future"))
    bench.now -= 3_600_000
    bench.prepare(b"open")
    bench.check()
    assert [question.message.body for question in bench.asked] == [b"open"]
    assert len(bench.messages(TRANS_HALF_TOPIC)) == 2, "what a round stores it does not check"
