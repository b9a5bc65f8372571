"""The sheets of ``rmqctl cheat``: what to do, and the line that does it; a test parses each."""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Sheet(NamedTuple):
    """A sheet: what it is about, and its lines with what they are for."""

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
            "a file, a line a message": "rmqctl produce access /var/log/access.log",
            "a file as one message": "rmqctl produce pictures -D '' cat.png",
            "key and body in each line": "rmqctl produce greetings -K , < pairs.csv",
            "CSV with named columns": "rmqctl produce orders --input csv < orders.csv",
            "to be delivered in ten seconds": "echo later | rmqctl produce greetings --delay 10s",
            "acknowledged when the device has it": "rmqctl produce orders --sync < orders.txt",
            "a hundred made up ones, ten a second": (
                "rmqctl produce load --template 'order %i' -c 100 --rate 10/s"
            ),
            "how long the store takes for a message": (
                "rmqctl produce load --template x -c 100 --batch 1 -v"
            ),
            "what grows in a file": "tail -F app.log | rmqctl produce logs",
        },
    ),
    "consume": Sheet(
        "reading: from where, until when, in which form",
        {
            "everything up to now": "rmqctl consume greetings -e",
            "what comes, from now on": "rmqctl consume greetings --offset end",
            "the last ten, and what comes": "rmqctl consume greetings --last 10 -F",
            "the last hour": "rmqctl consume greetings --from -1h -e",
            "a stretch of a day": (
                "rmqctl consume orders --from 2026-01-31T10:00 --to 2026-01-31T11:00"
            ),
            "one queue, from an offset": "rmqctl consume orders -Q 3 --offset 1000 -c 5",
            "by tag": "rmqctl consume orders --tag 'paid || refunded' -e",
            "JSON bodies that say something": "rmqctl consume orders --json-path 'sum > 100' -e",
            "place, time, key and body": r"rmqctl consume orders -e -f '%q:%o %d %k %s\n'",
            "as JSON, a line a message": "rmqctl consume orders -e -o jsonl",
            "bodies in hex": "rmqctl consume orders -e --body hex",
        },
    ),
    "groups": Sheet(
        "consuming as a group: members, failures, order",
        {
            "go on where the group stopped": "rmqctl consume orders -g billing",
            "exactly three, and remember them": "rmqctl consume orders -g billing -c 3",
            "a program does the work": "rmqctl consume orders -g billing --exec ./bill.sh",
            "a shell line does": "rmqctl consume orders -g billing --exec 'sh -c \"wc -c\"'",
            "three attempts, then a dead letter": (
                "rmqctl consume orders -g billing --exec ./bill.sh --max-reconsume-times 3"
            ),
            "one by one, in order": "rmqctl consume orders -g billing --orderly --exec ./bill.sh",
            "four at once": "rmqctl consume orders -g billing --threads 4 --exec ./bill.sh",
            "look, but do not commit": "rmqctl consume orders -g billing --no-commit -e",
            "who is in it, and has which queues": "rmqctl group clients billing",
            "a new group begins at a time": "rmqctl consume orders -g audit --from -1d",
            "or at what comes from now on": "rmqctl consume orders -g audit --offset end",
        },
    ),
    "lag": Sheet(
        "who is late, since when, and what will be lost",
        {
            "all groups, worst first": "rmqctl lag show --sort -lag",
            "queue by queue": "rmqctl lag show billing --by queue",
            "live": "rmqctl lag watch",
            "until a group is through": "rmqctl lag watch billing --until-drained",
            "how old what waits is": "rmqctl lag histogram billing",
            "unread and about to be deleted": "rmqctl lag risk --within 1d",
            "a report over the disks of a cluster": (
                "rmqctl lag report --engine local -S '/disks/*/store'"
            ),
            "the same as a page with charts": (
                "rmqctl lag report --engine local -S '/disks/*/store' -o html --save lag.html"
            ),
            "for Nagios": "rmqctl lag check billing --warn-lag 1000 --crit-age 10m",
            "for Prometheus": "rmqctl lag check -o prometheus > rmqctl.prom",
        },
    ),
    "reset": Sheet(
        "moving a group: look, do, take back",
        {
            "where it stands, with the messages around": (
                "rmqctl offset inspect billing --around 3,3"
            ),
            "back to a time, as mqadmin does": (
                "rmqctl resetOffsetByTime -g billing -t orders -s '2026-01-31 14:00'"
            ),
            "the first message at or after a time: what would happen": (
                "rmqctl offset reset -g billing -t orders --to-datetime '2026-01-31 14:00'"
            ),
            "do it": "rmqctl offset reset -g billing -t orders --by-duration 1h --execute",
            "skip the backlog": "rmqctl offset reset -g billing -t orders --to-latest --execute",
            "one queue": "rmqctl offset reset -g billing -t orders:3 --to-offset 100 --execute",
            "as another group stands": (
                "rmqctl offset reset -g billing -t orders --to-group audit --execute"
            ),
            "save a plan": (
                "rmqctl offset reset -g billing --all-topics --to-latest --export plan.csv"
            ),
            "carry it out if nothing has moved": (
                "rmqctl offset reset --from-file plan.csv --expect plan.csv --execute"
            ),
            "who moved what": "rmqctl offset history billing",
            "take the last change back": "rmqctl offset undo --last --execute",
        },
    ),
    "dlq": Sheet(
        "dead letters and retries: look, mend, send again",
        {
            "which groups have some": "rmqctl dlq list",
            "what they are": "rmqctl dlq browse billing",
            "by the reason": "rmqctl dlq groups billing --by reason",
            "try sending all again": "rmqctl dlq redrive billing --all",
            "do it, fifty a second": "rmqctl dlq redrive billing --all --rate 50/s --execute",
            "go on with a run that broke off": "rmqctl dlq redrive billing --resume last --execute",
            "those older than a month are done with": "rmqctl dlq ack billing --older-than 30d",
            "keep them as JSON": "rmqctl dlq export billing -o jsonl > dead.jsonl",
            "what waits for another attempt": "rmqctl retry browse billing",
            "what is delivered when": "rmqctl retry agenda",
            "another attempt now": "rmqctl retry now billing --all",
        },
    ),
    "find": Sheet(
        "finding messages",
        {
            "by id": "rmqctl message get 7F0000010BDE18B4AAC2000000000000",
            "by place": "rmqctl message get -t orders -Q 0 -O 17",
            "by key": "rmqctl message query --key order-4711",
            "by any text": "rmqctl message search 'order 4711'",
            "by a regular expression, count only": (
                r"rmqctl message search --regex 'sku-\d+' --count-only"
            ),
            "with what came before and after": "rmqctl message search timeout --around 3",
            "what became of it": "rmqctl message life 7F0000010BDE18B4AAC2000000000000",
            "what an id tells": "rmqctl message decode-id 7F0000010BDE18B4AAC2000000000000",
            "how many by tag": "rmqctl message stats -t orders --by tag",
        },
    ),
    "topics": Sheet(
        "topics and groups: list, make, change, delete",
        {
            "all topics, fullest first": "rmqctl topic list --sort -messages",
            "queues with bounds and times": "rmqctl topic queues orders",
            "make one with four queues": "rmqctl topic create orders --queues 4",
            "make it read only": "rmqctl topic alter orders --perm 4",
            "how much it takes": "rmqctl topic usage orders",
            "delete it": "rmqctl topic delete orders --confirm orders",
            "all groups": "rmqctl group list",
            "five attempts for a group": "rmqctl group alter billing --retry-max-times 5",
        },
    ),
    "store": Sheet(
        "stores: make, look, check, see the bytes",
        {
            "make one": "rmqctl store init ./store > broker.conf",
            "what it is": "rmqctl store info",
            "a dead broker's disk": "rmqctl -S /mnt/disk/store topic queues",
            "check everything": "rmqctl store fsck",
            "what a finding means": "rmqctl explain UNIT_MISSING",
            "queues and index anew": (
                "rmqctl store rebuild queue --execute; rmqctl store rebuild index --execute"
            ),
            "the log as it grows": "rmqctl store tail",
            "one record, decoded": "rmqctl store dump 0 -o yaml",
            "its bytes, field by field": "rmqctl store dump 0 --as hex",
            "a queue's file": (
                "rmqctl store dump consumequeue/orders/0/00000000000000000000 --limit 10"
            ),
            "who has it open, and what waits": "rmqctl broker status",
            "deliver delayed messages without a client": "rmqctl broker start",
            "who changed what": "rmqctl audit list",
        },
    ),
    "pipes": Sheet(
        "out and in again: copying, saving, other programs",
        {
            "copy a topic": (
                "rmqctl consume orders -e -o jsonl | rmqctl produce copy --input jsonl"
            ),
            "from one store into another": (
                "rmqctl -S old message export -t orders | rmqctl -S new message import -"
            ),
            "a day of it as a store, without names": (
                "rmqctl store carve ../day -t orders --from 2026-01-31 --to 2026-02-01 "
                "--mask 'json.mail=hash,keys=hash' --execute"
            ),
            "save a topic": "rmqctl message export -t orders --save orders.jsonl",
            "into a table": "rmqctl consume orders -e -o csv > orders.csv",
            "count by hour": "rmqctl message stats -t orders --by hour -o tsv",
            "only some columns, for a script": (
                "rmqctl lag show -o tsv --columns group,topic,lag --no-headers"
            ),
            "names of the fields": "rmqctl lag show -o help",
        },
    ),
    "settings": Sheet(
        "settings, contexts, completion, help",
        {
            "what holds, and who says so": "rmqctl config show --origin",
            "a name for a store": "rmqctl context add prod --store /data/rocketmq/store",
            "use it": "rmqctl context use prod",
            "always JSON": "rmqctl config set output json",
            "completion in this shell": "source <(rmqctl completion bash)",
            "an old command of mqadmin's": "rmqctl mqadmin consumerProgress -g billing",
            "what a word means": "rmqctl explain half message",
            "is all there that is needed": "rmqctl doctor",
            "the manual of a command": "rmqctl man offset reset",
        },
    ),
}
