"""mqadmin's commands for topics, groups and offsets."""

from collections.abc import Mapping
from typing import Final

from .given import Lines, MqadminOptions, Old, line

_NO_NAME_SERVER: Final = "there is no name server: the folder of the store is the address"
_WHERE: Final = "b:brokerAddr= c:clusterName="


def _update_topic(given: MqadminOptions) -> Lines:
    verb = "alter" if given["t"] in given.topics else "create"
    options = given.options(r="--read-queue-nums", w="--write-queue-nums", p="--perm")
    return line(f"topic {verb}", [*options, *given.switches(o="order")], given["t"])


def _update_group(given: MqadminOptions) -> Lines:
    verb = "alter" if given["g"] in given.groups else "create"
    options = given.options(
        q="--retry-queue-nums",
        r="--retry-max-times",
        i="--broker-id",
        w="--which-broker-when-consume-slowly",
    )
    switches = given.switches(
        s="consume-enable",
        m="consume-from-min",
        d="broadcast",
        a="notify-consumer-ids-changed",
    )
    return line(f"group {verb}", [*options, *switches], given["g"])


def _delete_group(given: MqadminOptions) -> Lines:
    options = ["--remove-offsets"] if given.true("r") else []
    return line("group delete", options, given["g"])


def _consumer_progress(given: MqadminOptions) -> Lines:
    if given.get("g") is None:
        return line("lag show")
    lines = line("lag show", ["--by", "queue"], given["g"])
    return lines + line("group clients", (), given["g"]) if given.true("s") else lines


def _broker_consume_stats(given: MqadminOptions) -> Lines:
    level = given.get("l")
    return line("lag show", ["--by", "queue", *(["--where", f"lag >= {level}"] if level else [])])


def _reset_by_time(given: MqadminOptions) -> Lines:
    force = "--force" if given.true("f", default=True) else "--no-force"
    options = ["-g", given["g"], "-t", given["t"], "-s", given["s"], force]
    return [["resetOffsetByTime", *options]]


def _skip_accumulated(given: MqadminOptions) -> Lines:
    options = ["-g", given["g"], "-t", given["t"], "--to-latest"]
    back_only = [] if given.true("f", default=True) else ["--no-forward"]
    return [["offset", "reset", *options, *back_only]]


def _clone(given: MqadminOptions) -> Lines:
    options = ["-g", given["d"], "-t", given["t"], "--to-group", given["s"]]
    return [["offset", "reset", *options, "--new-group"]]


TOPICS_AND_GROUPS: Final[Mapping[str, Old]] = {
    "updateTopic": Old(
        f"{_WHERE} t:topic=* r:readQueueNums= w:writeQueueNums= p:perm= o:order= u:unit= "
        "s:hasUnitSub=",
        _update_topic,
        "us",
    ),
    "deleteTopic": Old(
        "t:topic=* c:clusterName=", lambda given: line("topic delete", (), given["t"])
    ),
    "updateTopicPerm": Old(
        f"{_WHERE} t:topic=* p:perm=*",
        lambda given: line("topic alter", ["--perm", given["p"]], given["t"]),
    ),
    "updateOrderConf": Old("t:topic=* v:orderConf= m:method=*", _NO_NAME_SERVER),
    "topicList": Old("c:clusterModel", lambda given: line("topic list")),
    "topicRoute": Old(
        "t:topic=* l:list", lambda given: line("topic describe", (), given["t"]), "l"
    ),
    "topicStatus": Old("t:topic=*", lambda given: line("topic queues", (), given["t"])),
    "topicClusterList": Old(
        "t:topic=*", "a store is one broker without a cluster; see 'store info'"
    ),
    "allocateMQ": Old(
        "t:topic=* i:ipList=*",
        "clients have no addresses here; 'group clients' shows members and their queues",
    ),
    "updateSubGroup": Old(
        f"{_WHERE} g:groupName=* s:consumeEnable= m:consumeFromMinEnable= "
        "d:consumeBroadcastEnable= q:retryQueueNums= r:retryMaxTimes= i:brokerId= "
        "w:whichBrokerWhenConsumeSlowly= a:notifyConsumerIdsChanged=",
        _update_group,
    ),
    "deleteSubGroup": Old(f"{_WHERE} g:groupName=* r:removeOffset=", _delete_group),
    "getConsumerConfig": Old("g:groupName=*", lambda given: line("group describe", (), given["g"])),
    "consumerProgress": Old("g:groupName= s:showClientIP=", _consumer_progress),
    "consumerConnection": Old(
        "g:consumerGroup=* b:brokerAddr=", lambda given: line("group clients", (), given["g"])
    ),
    "consumerStatus": Old(
        "g:consumerGroup=* i:clientId= b:brokerAddr= s:jstack",
        lambda given: line("group clients", ["-o", "wide"], given["g"]),
        "is",
    ),
    "producer": Old(
        "b:broker=*",
        "producers do not register with a store; 'store info' lists the writing processes",
    ),
    "producerConnection": Old(
        "g:producerGroup=* t:topic=*",
        "producers do not register with a store; 'store info' lists the writing processes",
    ),
    "startMonitoring": Old("", lambda given: line("lag watch")),
    "resetOffsetByTime": Old(
        "g:group=* t:topic=* s:timestamp=* f:force= c:cplus", _reset_by_time, "c"
    ),
    "skipAccumulatedMessage": Old("g:group=* t:topic=* f:force=", _skip_accumulated),
    "cloneGroupOffset": Old("s:srcGroup=* d:destGroup=* t:topic=* o:offline=", _clone, "o"),
    "brokerConsumeStats": Old(
        "b:brokerAddr= t:timeoutMillis= l:level= o:order=", _broker_consume_stats, "to"
    ),
}
