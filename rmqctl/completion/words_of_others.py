"""Words, options and values that people bring from other tools, and what does the same here.

From kcat, rpk, nats, kubectl, mqadmin, Kafka's scripts and sqlite3. A value may be several
commands; texts in capitals stand for names that the caller chooses.
"""

from collections.abc import Mapping
from typing import Final, TypeVar

Meant = str | tuple[str, ...]

_COPY = "message export TOPIC | rmqctl message import - -t OTHER"
_BY_HOST = "message stats -t TOPIC --by host"
_TWICE = "message stats -t TOPIC --by key --where 'messages > 1'"
_SKIP = "offset reset -g GROUP -t TOPIC:QUEUE --shift-by 1"
_STOP = "group alter GROUP --no-consume-enable"
_GO_ON = "group alter GROUP --consume-enable"
_DEAD = "retry dead GROUP -k KEY"
_NOW = "retry now GROUP -k KEY"
_MASKED = "store carve OUT -t TOPIC --mask RULES"
_EARLIER = "lag show --compare -1h"
_UNDO = "offset undo --last"


_T = TypeVar("_T", str, Meant)


def _each(words: str, meant: _T) -> dict[str, _T]:
    return dict.fromkeys(words.split(), meant)


OTHERS: Final[Mapping[str, Meant]] = {
    **_each("send publish pub", "produce"),
    **_each("read subscribe sub cat", "consume"),
    **_each("logs log follow", "consume TOPIC -F"),
    "tail": "consume",
    **_each("grep find locate lookup", "message search"),
    **_each("who where", "message life"),
    **_each("ls topics", "topic list"),
    "groups": "group list",
    **_each("reset seek rewind", "offset reset"),
    **_each("skip advance", _SKIP),
    **_each("fsck check", "store fsck"),
    **_each("df usage free quota disk", "store du"),
    "extract": "store carve",
    **_each("park bury", _DEAD),
    **_each("gc vacuum prune purge trim expire cleanup", "store clean"),
    "backup": "store snapshot",
    **_each("copy cp mirror clone", (_COPY, "store snapshot")),
    "replay": (_COPY, "offset reset"),
    **_each("redact mask anonymize sanitize", _MASKED),
    **_each("perf load loadtest", "bench produce"),
    **_each("top htop watch monitor", ("lag watch", "console")),
    **_each("ui tui gui dashboard k9s screen", "console"),
    "alert": "lag check",
    **_each("metrics prometheus exporter", "lag check -o prometheus"),
    **_each("health healthcheck", ("lag check", "doctor")),
    **_each("stream streams", "topic list"),
    **_each("consumer-groups", "group list"),
    **_each("schedule delay delays", "retry agenda"),
    **_each("events journal", "audit list"),
    **_each("tar archive", "store snapshot"),
    **_each("ping connect", "store info"),
    **_each("queue queues partition partitions", "topic queues"),
    **_each("error errors code", "explain CODE"),
    **_each("ctx", "context list"),
    **_each("docs examples tutorial howto", "cheat"),
    **_each("count wc", "message stats"),
    **_each("uniq unique distinct duplicates dups", _TWICE),
    **_each("producers producer publishers senders", _BY_HOST),
    **_each("consumers consumer members", "group clients"),
    **_each("drain move", "message export TOPIC -Q N --save FILE"),
    **_each("pause freeze suspend disable cordon hold maintenance scale", _STOP),
    **_each("resume unfreeze enable uncordon unpause continue", _GO_ON),
    **_each("rollback rollout revert", _UNDO),
    "compare": ("offset diff", "store diff"),
    "status": ("lag show", "broker status"),
    **_each("ps brokers cluster", "broker status"),
    "stats": ("topic stats", "message stats"),
    "histogram": ("message stats --by hour", "lag histogram"),
    **_each("requeue resend redeliver retry-now", ("retry now", "dlq redrive")),
    "edit": ("dlq redrive GROUP ID --edit", "topic alter", "group alter"),
    **_each("delete rm drop", ("topic delete", "group delete")),
    **_each("use-context use", "context use"),
    **_each("get-contexts contexts", "context list"),
    "current-context": "context show",
    **_each("offsets progress", "offset list"),
    **_each("deadletters dead-letters", "dlq list"),
    "retries": "retry browse",
    "changes": "audit list",
    "exec": "consume TOPIC -g GROUP --exec CMD",
}
"""Words in the place of a command or a noun."""

BELOW_NOUNS: Final[Mapping[str, Mapping[str, Meant]]] = {
    "topic": {
        **_each("rm remove drop", "topic delete"),
        **_each("get info show", "topic describe"),
        **_each("add new", "topic create"),
        "ls": "topic list",
        **_each("edit set update config", "topic alter"),
        **_each("copy cp mirror clone replay rename", _COPY),
        **_each(
            "purge clear empty truncate trim",
            ("topic delete TOPIC", "offset reset -g GROUP -t TOPIC --to-latest"),
        ),
        "drain": "message export TOPIC -Q N --save FILE",
        **_each("senders producers top", _BY_HOST),
        **_each("duplicates dups uniq dedupe", _TWICE),
        "compact": "store clean",
        "sync": _COPY,
        **_each("reset seek rewind", "offset reset"),
        "clients": "group clients",
        **_each("watch tail follow logs", "consume TOPIC -F"),
        **_each("consume read cat", "consume TOPIC -e"),
        **_each("produce send publish", "produce TOPIC"),
        "peek": "consume TOPIC --last 10",
        "head": "consume TOPIC -e -c 10",
        **_each("retention expire", "store du"),
        **_each("offsets partitions partition", "topic queues"),
        **_each("consumers groups", "topic describe"),
        **_each("search grep find", "message search"),
        "count": "topic stats",
        **_each("du size", "topic usage"),
        "lag": "lag show -t TOPIC",
        "export": "message export TOPIC",
        "import": "message import FILE -t TOPIC",
    },
    "group": {
        **_each("rm remove drop", "group delete"),
        **_each("get info show inspect", "group describe"),
        **_each("add new", "group create"),
        "ls": "group list",
        **_each("members consumers", "group clients"),
        **_each("pause freeze suspend stop disable cordon lock scale", _STOP),
        **_each("resume unfreeze thaw start enable uncordon unpause continue", _GO_ON),
        **_each("edit set update config", "group alter"),
        **_each("seek reset rewind move", "offset reset"),
        "skip": _SKIP,
        **_each("diff compare", "offset diff"),
        **_each("lag offsets progress", "lag show"),
        **_each("status stuck health", "group why"),
        "history": "offset history",
        **_each("undo rollback rollout revert", _UNDO),
        "check": "lag check",
        "watch": "lag watch",
        "retries": "retry browse",
        "dlq": "dlq browse",
    },
    "dlq": {
        **_each("replay retry requeue resend reprocess drain", "dlq redrive"),
        **_each("len size depth", "dlq list"),
        **_each("purge delete rm drop clear skip", "dlq ack"),
        **_each("get describe inspect", "dlq show"),
        **_each("move add send put push insert park bury", _DEAD),
        **_each("ls search find query grep peek read consume", "dlq browse"),
        **_each("count stats", "dlq groups"),
        **_each("copy save dump download", "dlq export"),
        **_each("edit fix", "dlq redrive GROUP ID --edit"),
    },
    "store": {
        **_each("check verify validate scrub", "store fsck"),
        "fix": "store repair",
        **_each("backup copy cp clone tar archive sync", "store snapshot"),
        "merge": _COPY,
        **_each("create new make", "store init"),
        **_each("df size usage retention agenda", "store du"),
        **_each("gc vacuum compact prune purge expire trim cleanup", "store clean"),
        **_each("export redact mask anonymize sanitize", _MASKED),
        **_each("list ls", "context list"),
        **_each("switch use select", "context use"),
        **_each("describe status stat stats show get", "store info"),
        "compare": "store diff",
        **_each("reindex index", "store rebuild"),
        "import": "store restore",
        **_each("follow watch", "store tail"),
        "cat": "store dump",
    },
    "message": {
        "count": "message stats",
        **_each("find grep", "message search"),
        **_each("list ls cat", "consume TOPIC -e"),
        "head": "consume TOPIC -e -c 10",
        **_each("last peek", "consume TOPIC --last 10"),
        **_each("tail watch follow", "consume TOPIC -F"),
        **_each("show describe body", "message get"),
        **_each("history where consumers", "message life"),
        "skip": _SKIP,
        **_each("copy cp mirror replay", _COPY),
        **_each("send produce publish", "produce TOPIC"),
        **_each("histogram hist", "message stats --by hour"),
        "top": _BY_HOST,
        **_each("duplicates dups uniq dedupe", _TWICE),
        **_each("aggregate group", "message stats --by WHAT"),
        **_each("move dlq dead", _DEAD),
        **_each("retry redeliver resend requeue", (_NOW, "dlq redrive GROUP -k KEY")),
        **_each("ack done", _SKIP),
        "edit": "dlq redrive GROUP ID --edit",
    },
    "retry": {
        **_each("list ls", "retry browse"),
        **_each("get describe", "retry show"),
        **_each("skip drop kill park bury move delete rm", "retry dead"),
        **_each("ack done", ("retry dead GROUP ID", "dlq ack GROUP ID")),
        **_each("run rerun send force flush redrive replay resend", "retry now"),
        **_each("edit fix", "dlq redrive GROUP ID --edit"),
        **_each("when schedule", "retry agenda"),
    },
    "config": {
        **_each("list ls view", "config show"),
        "use-context": "context use",
        **_each("get-contexts get-context", "context list"),
        "current-context": "context show",
        "set-context": "context add NAME --store DIR",
    },
    "context": {
        **_each("create new set", "context add NAME --store DIR"),
        **_each("delete remove", "context rm"),
        **_each("get ls", "context list"),
        "current": "context show",
        **_each("switch select", "context use"),
    },
    "audit": {
        **_each("undo rollback revert", _UNDO),
        **_each("log history ls tail", "audit list"),
        **_each("get describe", "audit show"),
    },
    "offset": {
        **_each("get fetch ls", "offset list"),
        **_each("show describe", "offset inspect"),
        **_each("seek move alter commit rewind replay back", "offset reset"),
        **_each("advance forward next increment", "offset reset --shift-by 1"),
        "set": "offset reset --to-offset",
        "skip": "offset reset --shift-by 1",
        "compare": "offset diff",
        **_each("rollback revert", _UNDO),
        **_each("audit log", "offset history"),
        **_each("save backup copy", "offset export"),
        "restore": ("offset import", "offset undo"),
    },
    "lag": {
        **_each("list get describe", "lag show"),
        **_each("diff compare history delta", _EARLIER),
        **_each("alert monitor alarm notify", "lag check"),
        "trend": _EARLIER,
        **_each("export metrics prometheus", "lag check -o prometheus"),
        "top": "lag watch",
        "at-risk": "lag risk",
        "why": "group why",
    },
    "broker": {
        **_each("info list describe show get", "broker status"),
        **_each("agenda schedule", "retry agenda"),
        **_each("retention expire", "store du"),
        **_each("clean cleanup gc", "store clean"),
        "set": "broker config set",
        "run": "broker start",
    },
    "bench": {
        **_each("run all perf e2e end-to-end", "bench both"),
        **_each("send producer pub", "bench produce"),
        **_each("read consumer sub", "bench consume"),
    },
}
"""Words below a noun."""

OPTIONS: Final[Mapping[str, Meant]] = {
    **_each("--since --start --begin", "--from"),
    **_each("--until --end", "--to"),
    "--tail": "--last",
    "--page": "--limit",
    **_each("--max-messages --num-records --num --messages --max", "--count"),
    **_each("--partition -p", "--queue"),
    "--partitions": ("--queues", "--queue"),
    "--from-beginning": "--offset start",
    **_each("--consumer-group --group-id", "--group"),
    "--topics": "--topic",
    **_each("--header --headers --prop", "--property"),
    **_each("--filter --select --selector --jq", ("--json-path", "--where")),
    **_each("--grep --contains --search", ("--body", "--where")),
    **_each("--json -j -J", "--output json"),
    **_each("--jsonl --ndjson", "--output jsonl"),
    "--yaml": "--output yaml",
    **_each("--anonymize --redact --hide", "--mask"),
    "--csv": ("--input csv", "--output csv"),
    **_each("--throughput --qps --tps --rps", "--rate"),
    "-s": "-S",
    "--duration": "--timeout",
    "--sort-by": "--sort",
    **_each("--force --assume-yes --no-confirm", "--yes"),
    "--all-namespaces": "--all",
    **_each("--group-by --per --field --aggregate --interval --bucket", "--by"),
    "--top": "--limit",
    **_each("--to-topic --new-name --dest --destination", "--topic"),
    **_each("--output-file --out --file", "--save"),
    **_each("--timestamp --time", ("--from", "--duration")),
    "--preview": "--dry-run",
    **_each("--earliest --to-beginning --to-start", "--to-earliest"),
    **_each("--latest --to-end", "--to-latest"),
    "--live": "--interval",
    **_each("--brokers --broker --bootstrap-server --server --namesrv --db --host", "--store"),
}
"""Options of other tools; the first one that the command has is named."""

A_FOLDER = "a store is a folder: --store DIR, where the volume of the container is mounted"
_JUDGED = "'lag check' exits with 3 where the lag is unknown"
_NEXT_PAGE = "the next page is --where 'queue_offset > LAST' with --limit N"

OPTIONS_OF: Final[Mapping[str, Mapping[str, str]]] = {
    "": {
        **_each("--container --docker --pod --volume", A_FOLDER),
        **_each("--strict --fail-on-unknown --fail-unknown --require-known", _JUDGED),
        "-L": "'topic list' lists the topics",
        "-C": "'consume TOPIC' reads",
        "-P": "'produce TOPIC' sends",
        "-b": A_FOLDER,
        "--list": "'topic list' and 'group list' list",
        "--describe": "'topic describe' and 'group describe' describe",
        "--reset-offsets": "'offset reset' moves a group",
    },
    "consume": {
        "-C": "'consume' reads; without -C",
        "-p": "the option is --queue here",
        "-J": "the option is --output jsonl here",
        **_each(
            "-r --all-topics --pattern",
            "name the topics: consume TOPIC TOPIC...",
        ),
        "-u": "output is printed at once",
        **_each("--speed --rate", "pipe -o jsonl into 'produce OTHER --input jsonl --speed 0.5'"),
    },
    "produce": {
        "-P": "'produce' sends; without -P",
        "-p": "the option is --queue here",
        "-l": "a message a line is the default",
        **_each("--each-file --whole-file", "-D '' sends one message per file"),
        "--duration": "'--timeout 10s' ends after a time; see also 'bench produce'",
        **_each("--file --from-file --input-file", "name the file: produce TOPIC FILE"),
    },
    "dlq browse": _each(
        "--page --offset --skip --after --start --start-after --from-offset --cursor", _NEXT_PAGE
    ),
    "dlq export": _each(
        "--save --out --output-file --file", "to a file: dlq export GROUP -o jsonl > FILE"
    ),
    "lag check": {
        **_each("--max --max-lag --lag --threshold --limit-lag", "the option is --crit-lag here"),
        **_each(
            "--max-age --older-than --age --oldest --max-oldest --stale --max-delay",
            "the option is --crit-age here",
        ),
    },
    "lag show": {
        **_each(
            "--since --diff --vs --ago --then --before --delta --previous",
            "the option is --compare here",
        ),
        **_each("--at --when", "the option is --as-of here"),
        "--watch": "'lag watch' prints it again and again",
        "-w": "'lag watch' prints it again and again",
    },
    "lag watch": {
        **_each(
            "-Q --queue", "'topic queues TOPIC' shows queues, 'consume TOPIC -Q N -F' reads one"
        ),
    },
    "message import": {
        "--rate": "--speed 0.5 keeps the times between messages, half as fast; "
        "'produce --input jsonl' has --rate",
    },
    "group describe": {
        **_each("--lag --offsets", "'lag show GROUP' shows the lag, 'offset list GROUP' offsets"),
        "--members": "'group clients GROUP' shows the members",
        "--state": "'group why GROUP' shows what holds it up",
    },
    "topic describe": _each("-p --partitions --queues", "'topic queues TOPIC' shows its queues"),
    "topic queues": {"-Q": "add --where 'queue_id = N'"},
    "message query": {"--trace": "for a property: message search -H traceId=ID"},
    "message search": {"--trace": "for a property: -H traceId=ID"},
    "message stats": _each("--duplicates --dups --twice", f"'{_TWICE}'"),
    "completion": {
        "--install": "load it: source <(rmqctl completion bash)",
        "--shell": "without --shell: completion bash",
    },
    "message trace": {"--id": "without --id: message trace ID"},
    "offset reset": {
        **_each("--to --time --timestamp --datetime --at", "the option is --to-datetime here"),
        "--offset": "the option is --to-offset here",
        "--partition": "name the queues after the topic: -t TOPIC:2,5",
        "--partitions": "name the queues after the topic: -t TOPIC:2,5",
        "-p": "name the queues after the topic: -t TOPIC:2,5",
    },
    "store carve": {
        "--dlq": "the dead letters of a group are a topic: -t %DLQ%GROUP",
    },
    "store clean": {"--at": "'store du' shows what the next deletion frees, and when"},
    "store snapshot": {
        **_each("--mask --masked --topic -t --redact", f"'{_MASKED}' copies a part, masked"),
    },
    "store tail": {
        **_each("-t --topic", "add --where 'topic = NAME'"),
    },
}
"""Options of one command, or of all ("") with a sentence of their own."""

MISSING: Final[Mapping[str, str]] = {
    "dlq show": "'rmqctl dlq browse GROUP' lists ids",
    "retry show": "'rmqctl retry browse GROUP' lists ids",
    "audit show": "'rmqctl audit list' lists the changes",
    "store diff": "it compares two folders: store diff A B",
    "completion": "a shell is bash, zsh, fish or powershell",
    "message import": "a file of 'message export', or - for standard input",
    "consume": "'rmqctl topic list' lists the topics",
    "produce": "'rmqctl topic list' lists the topics",
}
"""Where the value of an argument that was left out is found."""

INVALID: Final[Mapping[str, tuple[str, str]]] = {
    "offset undo": ("'last'", "the last change is --last"),
}
"""A wrong value of a command, and what is meant by it."""
