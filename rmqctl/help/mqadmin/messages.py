"""mqadmin's commands for messages."""

from collections.abc import Mapping
from typing import Final

from storage.format.cq_unit import CQ_STORE_UNIT_SIZE

from .given import Lines, MqadminOptions, Old, line

_MOST: Final = "128"
"""The default count of mqadmin's consumeMessage."""
_MEASURES: Final = (
    "it measures the network between client and broker, and there is none; "
    "'produce --template x -c 100 --batch 1 -v' measures the store"
)


def _template(body: str) -> str:
    """A template of ``produce`` for a literal body."""
    return body.replace("\\", "\\\\").replace("%", "%%")


def _send(given: MqadminOptions) -> Lines:
    options = given.options(k="--key", c="--tag", i="--queue")
    return line("produce", [*options, "--template", _template(given["p"])], given["t"])


def _consume(given: MqadminOptions) -> Lines:
    options = given.options(i="--queue", o="--offset", s="--from", e="--to")
    count = given.get("c") or _MOST
    return line("consume", ["--exit", *options, "--count", count, "--with-meta"], given["t"])


def _print(given: MqadminOptions) -> Lines:
    options = given.options(i="--queue", s="--tag", b="--from", e="--to")
    form = ["--with-meta"] if given.true("d", default=True) else ["-f", r"%m %q:%o %d %g %k\n"]
    return line("consume", ["--exit", *options, *form], given["t"])


def _print_by_queue(given: MqadminOptions) -> Lines:
    if not given.true("f"):
        return _print(given)
    options = given.options(i="--queue", s="--tag", b="--from", e="--to")
    return line("message stats", ["--by", "tag", "-t", given["t"], *options])


def _by_id(given: MqadminOptions) -> Lines:
    return [words for msg_id in given["i"].split(",") for words in line("message get", (), msg_id)]


def _unit(given: MqadminOptions) -> Lines:
    """The file of a queue with a unit, and the selected units."""
    index, count = given.number("i"), given.number("c", 10)
    units = given.queue_file_units
    file = f"{index // units * units * CQ_STORE_UNIT_SIZE:020}"
    place = f"consumequeue/{given['t']}/{given.number('q')}/{file}"
    where = f"queue_offset >= {index} and queue_offset < {index + count}"
    return line("store dump", ["--where", where], place)


MESSAGES: Final[Mapping[str, Old]] = {
    "sendMessage": Old(
        "t:topic=* p:body=* k:key= c:tags= b:broker= i:qid= m:msgTraceEnable=", _send, "m"
    ),
    "consumeMessage": Old(
        "t:topic=* b:brokerName= i:queueId= o:offset= g:consumerGroup= s:beginTimestamp= "
        "e:endTimestamp= c:MessageNumber=",
        _consume,
        "g",
    ),
    "printMsg": Old(
        "t:topic=* c:charsetName= s:subExpression= b:beginTimestamp= e:endTimestamp= d:printBody=",
        _print,
        "c",
    ),
    "printMsgByQueue": Old(
        "t:topic=* a:brokerName= i:queueId=* c:charsetName= s:subExpression= b:beginTimestamp= "
        "e:endTimestamp= p:print= d:printBody= f:calculate=",
        _print_by_queue,
        "acp",
    ),
    "queryMsgById": Old(
        "i:msgId=* g:consumerGroup= d:clientId= s:sendMessage= u:unitName=", _by_id, "gdsu"
    ),
    "queryMsgByKey": Old(
        "t:topic=* k:msgKey=*",
        lambda given: line("message query", ["--key", given["k"], "-t", given["t"]]),
    ),
    "queryMsgByUniqueKey": Old(
        "i:msgId=* g:consumerGroup= d:clientId= t:topic= a:showAll", _by_id, "gdta"
    ),
    "queryMsgByOffset": Old(
        "t:topic=* b:brokerName= i:queueId=* o:offset=*",
        lambda given: line("message get", ["-t", given["t"], "-Q", given["i"], "-O", given["o"]]),
    ),
    "queryMsgTraceById": Old(
        "i:msgId=* t:traceTopic=",
        lambda given: line("message trace", given.options(t="--trace-topic"), given["i"]),
    ),
    "queryCq": Old("t:topic=* q:queue=* i:index=* c:count= b:broker= g:consumer=", _unit, "g"),
    "checkMsgSendRT": Old("t:topic=* a:amount= s:size=", _MEASURES),
    "sendMsgStatus": Old("b:brokerName=* s:messageSize= c:count=", _MEASURES),
    "clusterRT": Old("a:amount= s:size= c:cluster= p:print= m:machine= i:interval=", _MEASURES),
}
