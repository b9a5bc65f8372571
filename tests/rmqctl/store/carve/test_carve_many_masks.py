"""Records that are masked many at once are those that are masked one by one, byte by byte."""

import numpy as np
import pytest

from rmqctl.admin import store as admin
from rmqctl.admin.known_topics import INNER_TOPICS
from rmqctl.admin.store.property_masks import masking_of, with_texts
from rmqctl.admin.store.record_transform import RecordTransform, UnmaskableError
from rmqctl.message.exchange.masking import parse_rules, unmatched
from rmqctl.store.carve.masks import RuleMask
from storage.config import SMALL_STORE
from storage.format.compress import compress
from storage.format.message import MessageSysFlag
from storage.format.names import COMMITLOG, CONSUMEQUEUE, INDEX
from storage.format.record import encode_record
from storage.readonly import StoreView
from storage.tools.carve.columns import ExactEncoder
from storage.tools.carve.records import with_properties
from tests.support import golden, golden_samples

RULES = (
    "keys=hash",
    "tags=stars,keys=text:a b,property.color=drop",
    "ids=hash,keys=drop,tags=hash,property.UNIQ_KEY=stars",
    "property.WAIT=text:\N{SNOWMAN},tags=drop,ids=hash",
)
NOTE = {"argv": ["test"]}


class OneByOne:
    """A mask that is only known by what it does to a message."""

    def __init__(self, mask):
        self.unpacks = mask.unpacks
        self.apply = mask.apply


def carved(root, target, rules, mask, topics):
    """The files of the new store, how many messages are lost, what is said."""
    said: list[str] = []
    with StoreView.open(root) as view:
        change = admin.carve(
            view, target, topics=topics, mask=mask, config=SMALL_STORE, warn=said.append
        )
        rows = list(change.apply(NOTE).rows)
    files = {
        str(path.relative_to(target)): path.read_bytes()
        for folder in (COMMITLOG, CONSUMEQUEUE, INDEX)
        for path in sorted((target / folder).rglob("*"))
        if path.is_file()
    }
    return files, rows, change.lost, said, unmatched(rules)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", golden_samples.some(golden.names(), {*golden_samples.FEW, "small-files-4.9"})
)
def test_stores_of_brokers_are_masked_as_one_by_one(name, tmp_path):
    root = golden.store(name)
    with StoreView.open(root) as view:
        topics = sorted(
            {t for t, _ in view.queues() if t not in INNER_TOPICS and not t.startswith("%LMQ%")}
        )
    text = RULES[golden.names().index(name) % len(RULES)]
    results = []
    for folder, wrapped in (("many", RuleMask), ("one", lambda rules: OneByOne(RuleMask(rules)))):
        rules = parse_rules(text, "key")
        results.append(carved(root, tmp_path / folder, rules, wrapped(rules), topics))
    many, one = results
    assert many == one
    assert many[0]


def record(properties, body=b"body", sys_flag=0, **more):
    return encode_record(
        topic="t",
        queue_id=0,
        body=body,
        properties=properties,
        queue_offset=7,
        physical_offset=99,
        store_timestamp=3,
        born_timestamp=2,
        born_host=bytes(20 if sys_flag & MessageSysFlag.BORNHOST_V6_FLAG else 8),
        store_host=bytes(8),
        sys_flag=sys_flag,
        **more,
    )


USUAL = (
    record(b"KEYS\x01k\x02TAGS\x01a"),
    record(b"TAGS\x01a\x02UNIQ_KEY\x01" + b"0" * 32 + b"\x02KEYS\x01a b  c\x02who\x01me\x01you"),
    record(b"who\x01me"),
    record(b""),
    record(b"KEYS\x01k", b"Public\x01"),
    record(b"MYKEYS\x01k\x02KEYS2\x01k\x02TAGS\x01KEYS"),
)
UNUSUAL = (
    record(b"KEYS\x01k\x02KEYS\x01l"),
    record(b"KEYS\x01k\x02"),
    record(b"KEYS\x01k\x02\x02TAGS\x01a"),
    record(b"KEYS\x01\x02TAGS\x01a"),
    record(b"KEYS\x02TAGS\x01a"),
    record(b"\x01k\x02TAGS\x01a"),
    record("KEYS\x01\N{SNOWMAN}".encode()),
    record(b"KEYS\x01\xff"),
    record(b"KEYS\x01k\x00"),
    record(b"KEYS\x01k", b""),
    record(b"KEYS\x01k", b"Pub\x010\x01"),
    record(b"KEYS\x01k", compress(b"body"), MessageSysFlag.COMPRESSED_FLAG),
    record(b"KEYS\x01k", sys_flag=MessageSysFlag.BORNHOST_V6_FLAG),
)


def texts_of(records, text):
    """What the records become one by one, and many at once where they are usual."""
    transform = RecordTransform(None, RuleMask(parse_rules(text, "key")))
    buffer = bytearray().join(records)
    sizes = np.array([*map(len, records)], np.int64)
    block = ExactEncoder([("t", 0)]).read(buffer, sizes)
    masking = masking_of(transform)
    assert masking is not None
    found = masking.texts(buffer, block, np.ones(len(block), np.bool_))
    one_by_one: list[bytes | str | None] = []
    for old in records:
        try:
            one_by_one.append(transform.remake(old))
        except UnmaskableError as error:
            one_by_one.append(str(error))
    return found, one_by_one, block, buffer


@pytest.mark.parametrize("text", [*RULES, "property.who=drop", "tags=text:\x01"])
def test_properties_of_usual_records_are_those_of_messages(text):
    found, wanted, block, buffer = texts_of(USUAL, text)
    if text.isascii():
        assert None not in found, "or they would be masked one by one"
        made, sizes = with_texts(buffer, block, found)
        assert bytes(made) == b"".join(wanted)
        assert sizes.tolist() == [*map(len, wanted)]
    for row, new in enumerate(found):
        if new is not None:
            assert (
                with_properties(USUAL[row], int(block.properties_length[row]), new) == wanted[row]
            )


@pytest.mark.parametrize("text", ["keys=text:\x02", "keys=text:\N{SNOWMAN}"])
def test_texts_that_are_unusual_are_left_to_be_masked_as_messages(text):
    found, _, _, _ = texts_of(USUAL, text)
    assert [new is None for new in found] == [True, True, False, False, True, False]


def test_unusual_records_are_left_to_be_masked_as_messages():
    found, wanted, _, _ = texts_of(UNUSUAL, "keys=hash")
    assert found == [None] * len(UNUSUAL)
    assert all(isinstance(new, bytes) for new in wanted)


def test_bodies_matter_to_rules_of_traces_only():
    found, wanted, _, _ = texts_of(UNUSUAL, "property.KEYS=hash")
    packed = len(UNUSUAL) - 2
    for row in (packed - 1, packed):
        assert found[row] is not None
        assert found[row] == wanted[row][-len(found[row]) :]


def test_properties_that_grow_too_long_are_left_to_be_refused():
    found, wanted, _, _ = texts_of(
        [record(b"KEYS\x01" + b" ".join([b"a"] * 1000))], "keys=text:" + "k" * 40
    )
    assert found == [None]
    assert "longer than 32767 bytes" in wanted[0]


@pytest.mark.parametrize("text", ["body=stars", "json.a=drop", "hosts=drop", "property.*=drop"])
def test_rules_that_do_more_are_not_told_beforehand(text):
    assert masking_of(RecordTransform(None, RuleMask(parse_rules(text, "key")))) is None


def test_no_property_has_a_name_with_a_separator():
    assert (
        masking_of(RecordTransform(None, RuleMask(parse_rules("property.a\x01b=drop", "k"))))
        is None
    )
