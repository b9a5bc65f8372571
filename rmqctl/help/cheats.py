"""The sheets of ``rmqctl cheat``: tasks and the commands for them; a test parses each command."""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Sheet(NamedTuple):
    """A sheet: its subject, and its tasks with their commands."""

    about: str
    lines: Mapping[str, str]


SHEETS: Final[Mapping[str, Sheet]] = {
    "produce": Sheet(
        "sending: lines, files, keys, delays, load",
        {
            "one message": "echo hello | rmqctl produce greetings",
            "with a tag, two keys and a property": (
                "echo hello | rmqctl produce greetings --tag new -k a -k b -H color=red"
            ),
            "a file, one message per line": "rmqctl produce access /var/log/access.log",
            "each file as one message": "rmqctl produce pictures -D '' cat.png dog.png",
            "lines with key and body": "rmqctl produce greetings -K , < pairs.csv",
            "CSV with named columns": "rmqctl produce orders --input csv < orders.csv",
            "CSV with any columns: a key, and rows as JSON": (
                "rmqctl produce people --input csv --key-field id --body-field '*' < people.csv"
            ),
            "delivery after ten seconds": "echo later | rmqctl produce greetings --delay 10s",
            "acknowledged after a sync of the device": "rmqctl produce orders --sync < orders.txt",
            "a hundred generated messages, ten a second": (
                "rmqctl produce load --template 'order %i' -c 100 --rate 10/s"
            ),
            "latency at 500 messages a second": (
                "rmqctl bench both --rate 500/s -c 500 --warm-up 200ms"
            ),
            "most messages per second": "rmqctl bench produce --batch 1000 -c 50000",
            "most messages per second, reading": "rmqctl bench consume",
            "new lines of a growing file": "tail -F app.log | rmqctl produce logs",
        },
    ),
    "consume": Sheet(
        "reading: start, end and format",
        {
            "all messages up to now": "rmqctl consume greetings -e",
            "new messages only": "rmqctl consume greetings --offset end",
            "the last ten, then new messages": "rmqctl consume greetings --last 10 -F",
            "two topics, in one order": r"rmqctl consume orders payments -F -f '%t: %s\n'",
            "the last hour": "rmqctl consume greetings --from -1h -e",
            "an hour of a day": (
                "rmqctl consume orders --from 2026-01-31T10:00 --to 2026-01-31T11:00"
            ),
            "one queue, from an offset": "rmqctl consume orders -Q 3 --offset 1000 -c 5",
            "by tag": "rmqctl consume orders --tag 'paid || refunded' -e",
            "by a condition on JSON bodies": "rmqctl consume orders --json-path 'sum > 9 or n < 3'",
            "offset, time, key and body": r"rmqctl consume orders -e -f '%q:%o %d %k %s\n'",
            "as JSON, one message per line": "rmqctl consume orders -e -o jsonl",
            "bodies in hex": "rmqctl consume orders -e --body hex",
        },
    ),
    "groups": Sheet(
        "consuming as a group: members, failures, order",
        {
            "continue where the group stopped": "rmqctl consume orders -g billing",
            "exactly three, and commit": "rmqctl consume orders -g billing -c 3",
            "a program per message": "rmqctl consume orders -g billing --exec ./bill.sh",
            "a shell command": "rmqctl consume orders -g billing --exec 'sh -c \"wc -c\"'",
            "three retries, then a dead letter": (
                "rmqctl consume orders -g billing --exec ./bill.sh --max-reconsume-times 3"
            ),
            "one by one, in order": "rmqctl consume orders -g billing --orderly --exec ./bill.sh",
            "four at once": "rmqctl consume orders -g billing --threads 4 --exec ./bill.sh",
            "read without committing": "rmqctl consume orders -g billing --no-commit -e",
            "members and their queues": "rmqctl group clients billing",
            "why a group lags": "rmqctl group why billing",
            "stop its members for a while": "rmqctl group alter billing --no-consume-enable",
            "let them go on": "rmqctl group alter billing --consume-enable",
            "a new group, from a time": "rmqctl consume orders -g audit --from -1d",
            "a new group, from new messages on": "rmqctl consume orders -g audit --offset end",
        },
    ),
    "lag": Sheet(
        "lag of groups, its age, and messages at risk",
        {
            "all groups, largest lag first": "rmqctl lag show --sort -lag",
            "queue by queue": "rmqctl lag show billing --by queue",
            "an hour ago and now": "rmqctl lag show --compare -1h",
            "record it, also beside a Java broker": "rmqctl lag record lag.jsonl --interval 1m",
            "live": "rmqctl lag watch",
            "wait until a group has read all": "rmqctl lag watch billing --until-drained",
            "ages of unread messages": "rmqctl lag histogram billing",
            "unread messages that will be deleted": "rmqctl lag risk --within 1d",
            "a report over the stores of a cluster": (
                "rmqctl lag report --engine local -S '/disks/*/store'"
            ),
            "the report as a page with charts": (
                "rmqctl lag report --engine local -S '/disks/*/store' -o html --save lag.html"
            ),
            "keep a report each night": (
                "rmqctl lag report --engine local -S '/disks/*/store' -o parquet --save history"
            ),
            "yesterday and now, over a cluster": (
                "rmqctl lag report --engine local -S '/disks/*/store' --compare -1d "
                "--recorded history"
            ),
            "join the files of kept reports": "rmqctl lag compact history",
            "for Nagios": "rmqctl lag check billing --warn-lag 1000 --crit-age 10m",
            "for Prometheus": "rmqctl lag check -o prometheus > rmqctl.prom",
        },
    ),
    "reset": Sheet(
        "moving progress: inspect, move, undo",
        {
            "progress, with the messages around it": ("rmqctl offset inspect billing --around 3,3"),
            "move to a time, by mqadmin's rule": (
                "rmqctl resetOffsetByTime -g billing -t orders -s '2026-01-31 14:00'"
            ),
            "preview a move to a time": (
                "rmqctl offset reset -g billing -t orders --to-datetime '2026-01-31 14:00' -n"
            ),
            "an hour back": "rmqctl offset reset -g billing -t orders --by-duration 1h",
            "skip the backlog": "rmqctl offset reset -g billing -t orders --to-latest",
            "one queue": "rmqctl offset reset -g billing -t orders:3 --to-offset 100",
            "copy the progress of another group": (
                "rmqctl offset reset -g billing -t orders --to-group audit"
            ),
            "save a plan": (
                "rmqctl offset reset -g billing --all-topics --to-latest --export plan.csv"
            ),
            "carry out a plan if nothing has moved": (
                "rmqctl offset reset --from-file plan.csv --expect plan.csv"
            ),
            "moves of a group": "rmqctl offset history billing",
            "undo the last change": "rmqctl offset undo --last",
        },
    ),
    "dlq": Sheet(
        "dead letters and retries: inspect, redrive, acknowledge",
        {
            "groups with dead letters": "rmqctl dlq list",
            "dead letters of a group": "rmqctl dlq browse billing",
            "count by reason": "rmqctl dlq groups billing --by reason",
            "preview sending all again": "rmqctl dlq redrive billing --all -n",
            "send all, fifty a second": "rmqctl dlq redrive billing --all --rate 50/s",
            "continue an interrupted run": "rmqctl dlq redrive billing --resume last",
            "mark those older than a month as handled": "rmqctl dlq ack billing --older-than 30d",
            "export as JSON": "rmqctl dlq export billing -o jsonl > dead.jsonl",
            "messages that wait for a retry": "rmqctl retry browse billing",
            "due times of delayed messages and retries": "rmqctl retry agenda",
            "retry now": "rmqctl retry now billing --all",
            "a key that fails, to the dead letters": "rmqctl retry dead billing -k order-4711",
            "and back to the group": "rmqctl dlq redrive billing -k order-4711 --target retry",
            "a hundred at a time": (
                "rmqctl dlq browse billing --where 'queue_offset > 4711' --limit 100"
            ),
        },
    ),
    "find": Sheet(
        "finding messages",
        {
            "by id": "rmqctl message get 7F0000010BDE18B4AAC2000000000000",
            "by offset": "rmqctl message get -t orders -Q 0 -O 17",
            "by key": "rmqctl message query --key order-4711",
            "by text": "rmqctl message search 'order 4711'",
            "by a regular expression, count only": (
                r"rmqctl message search --regex 'sku-\d+' --count-only"
            ),
            "with the messages before and after": "rmqctl message search timeout --around 3",
            "history of a message": "rmqctl message life 7F0000010BDE18B4AAC2000000000000",
            "decode an id": "rmqctl message decode-id 7F0000010BDE18B4AAC2000000000000",
            "count by tag": "rmqctl message stats -t orders --by tag",
            "keys that came twice": "rmqctl message stats orders --by key --where 'messages > 1'",
            "the top five senders": "rmqctl message stats orders --by host --limit 5",
            "by a property": "rmqctl message search -H traceId=4711",
        },
    ),
    "topics": Sheet(
        "topics and groups: list, create, change, delete",
        {
            "all topics, fullest first": "rmqctl topic list --sort -messages",
            "queues with offsets and times": "rmqctl topic queues orders",
            "create a topic with four queues": "rmqctl topic create orders --queues 4",
            "make a topic read-only": "rmqctl topic alter orders --perm 4",
            "disk space of a topic": "rmqctl topic usage orders",
            "delete a topic": "rmqctl topic delete orders --confirm orders",
            "all groups": "rmqctl group list",
            "five retries for a group": "rmqctl group alter billing --retry-max-times 5",
        },
    ),
    "store": Sheet(
        "stores: create, inspect, check, decode",
        {
            "create a store": "rmqctl store init ./store > broker.conf",
            "facts about a store": "rmqctl store info",
            "the disk of a dead broker": "rmqctl -S /mnt/disk/store topic queues",
            "check a store": "rmqctl store fsck",
            "meaning of a finding": "rmqctl explain UNIT_MISSING",
            "rebuild queues and index": ("rmqctl store rebuild queue; rmqctl store rebuild index"),
            "follow the log": "rmqctl store tail",
            "one record, decoded": "rmqctl store dump 0 -o yaml",
            "one record, byte by byte": "rmqctl store dump 0 --as hex",
            "a queue's file": (
                "rmqctl store dump consumequeue/orders/0/00000000000000000000 --limit 10"
            ),
            "clients, services and waiting messages": "rmqctl broker status",
            "run the broker's services": "rmqctl broker start",
            "all changes": "rmqctl audit list",
        },
    ),
    "console": Sheet(
        "the store on a full screen: where to begin, keys, changes",
        {
            "what needs attention, live": "rmqctl console",
            "one group: trend, queues, members": "rmqctl console group billing",
            "why its messages failed": "rmqctl console dlq billing",
            "the last messages of a topic": "rmqctl console messages orders",
            "delayed messages and retries": "rmqctl console agenda",
            "the disk of a dead broker": "rmqctl -S /mnt/disk/store console",
            "groups with a lag only, largest first": (
                "rmqctl console groups --where 'lag > 0' --sort -lag"
            ),
            "some columns, in this order": "rmqctl console groups --columns group,lag,status",
            "look every ten seconds": "rmqctl console --every 10s",
            "changes on, each a plan first": "rmqctl console --write",
            "changes off for good, in a context": (
                "rmqctl context add prod --store /data/store console_write=never"
            ),
            "light background; letters instead of shapes": "rmqctl console --theme light --ascii",
            "without a full screen": "rmqctl lag watch",
        },
    ),
    "pipes": Sheet(
        "copying and exporting",
        {
            "copy a topic": (
                "rmqctl consume orders -e -o jsonl | rmqctl produce copy --input jsonl"
            ),
            "copy a topic to another store": (
                "rmqctl -S old message export -t orders | rmqctl -S new message import -"
            ),
            "a day of a topic as a store, masked": (
                "rmqctl store carve ../day -t orders --from 2026-01-31 --to 2026-02-01 "
                "--mask 'json.mail=hash,keys=hash'"
            ),
            "export a topic to a file": "rmqctl message export -t orders --save orders.jsonl",
            "export a topic as CSV": "rmqctl consume orders -e -o csv > orders.csv",
            "count by hour": "rmqctl message stats -t orders --by hour -o tsv",
            "count by a JSON field an hour": (
                "rmqctl message stats orders --by hour,json.country -o tsv"
            ),
            "an hour again, half as fast": (
                "rmqctl message export orders --from -1h | rmqctl message import - a2 --speed 0.5"
            ),
            "one queue to a file": "rmqctl message export orders -Q 3 --save queue3.jsonl",
            "only some columns, for a script": (
                "rmqctl lag show -o tsv --columns group,topic,lag --no-headers"
            ),
            "fields of a command": "rmqctl lag show -o help",
        },
    ),
    "settings": Sheet(
        "settings, contexts, completion, help",
        {
            "settings and their origins": "rmqctl config show --origin",
            "a name for a store": "rmqctl context add prod --store /data/rocketmq/store",
            "use that context": "rmqctl context use prod",
            "JSON as default output": "rmqctl config set output json",
            "load completion in bash": "source <(rmqctl completion bash)",
            "run an mqadmin command": "rmqctl mqadmin consumerProgress -g billing",
            "explain a term": "rmqctl explain half message",
            "check the environment": "rmqctl doctor",
            "make an archive for a bug report": "rmqctl doctor --bundle report.tar.gz",
            "manual page of a command": "rmqctl man offset reset",
        },
    ),
}
