"""How to call every command that prints rows: one line each, more where it has more forms.

Words are split at blanks; ``{name}`` is a word of the rich store (tests.support.rich_store).
``CHANGES`` marks a line that does something: it runs on a copy of its own.
"""

from typing import Final, NamedTuple


class Call(NamedTuple):
    """One call: the command's name as in the tree, and what follows it."""

    line: str
    changes: bool = False
    stdin: bytes = b""
    volatile: frozenset[str] = frozenset()
    """Fields that are not the same twice."""
    rows_at: str = ""
    """The member of the JSON object that the other formats print, if they do not print it all."""

    @property
    def command(self) -> str:
        """The command's name."""
        return self.line.partition(" -- ")[0]

    def words(self, values: dict[str, str]) -> list[str]:
        """The arguments of the call."""
        command, _, rest = self.line.partition(" -- ")
        return [*command.split(), *(word.format_map(values) for word in rest.split())]


CHANGES: Final = True
_SENT: Final = frozenset({"msg_id", "offset_msg_id"})
_TIMED: Final = frozenset({"elapsed_ms"})
_MEASURED: Final = frozenset(
    {"sent_bytes", "send_rate", "rate_error", "pacing_us", "ack_us", "receive_rate"}
    | {"received", "received_bytes", "end_to_end_us"}
)
_REDRIVEN: Final = frozenset({"run", "new_msg_id", "new_queue_id", "new_queue_offset"})

CALLS: Final = (
    Call("produce -- orders -Q 0 --input csv", CHANGES, b'body,tags\na,"x\x1b[1m"\nb,y\n', _SENT),
    Call("consume -- orders -e"),
    Call("consume -- --with-meta -e -- -leading"),
    Call("resetOffsetByTime -- -g readers -t orders -s -1d -n"),
    Call("resetOffsetByTime -- -g %g|x -t orders -s -1d --yes", CHANGES),
    Call("consume -- {foreign} -e"),
    Call("topic list"),
    Call("topic describe"),
    Call("topic describe -- orders"),
    Call("topic describe -- {foreign}"),
    Call("topic queues"),
    Call("topic queues -- {longest}"),
    Call("topic create -- made %made|2 --queues 3", CHANGES),
    Call("topic alter -- orders %odd%|name --queues 1 --perm 4 -n"),
    Call("topic alter -- orders --perm 4 --yes", CHANGES),
    Call("topic delete -- orders -n"),
    Call("topic delete -- --confirm -leading -y --remove-offsets -- -leading", CHANGES),
    Call("topic stats"),
    Call("topic stats -- orders --by queue"),
    Call("topic stats -- --by hour"),
    Call("topic usage"),
    Call("group list"),
    Call("group describe"),
    Call("group describe -- %g|x"),
    Call("group clients"),
    Call("group why -- readers", rows_at="facts"),
    Call("group why -- %g|x", rows_at="facts"),
    Call("group create -- made --retry-max-times 3", CHANGES),
    Call("group alter -- readers --no-consume-enable --retry-max-times 3 -n"),
    Call("group alter -- %g|x --retry-queue-nums 2 --yes", CHANGES),
    Call("group delete -- readers -n"),
    Call("group delete -- %g|x --confirm %g|x -y --remove-offsets --remove-topics", CHANGES),
    Call("message get -- {msg_id}"),
    Call("message get -- -t orders -Q 0 -O 3"),
    Call("message query -- -t orders --key all"),
    Call("message search -- all --jobs 1"),
    Call("message import -- {exported} --as jsonl", CHANGES, volatile=_SENT),
    Call("message trace -- {traced}"),
    Call("message life -- {dead_id}"),
    Call("message stats"),
    Call("message stats -- -t orders --by tag"),
    Call("message decode-id -- {msg_id} {offset_id}"),
    Call("dlq list"),
    Call("dlq browse -- readers"),
    Call("dlq show -- readers {dead_id}"),
    Call("dlq groups -- readers"),
    Call("dlq groups -- %g|x --by tag"),
    Call("dlq redrive -- readers --all -n"),
    Call("dlq redrive -- %g|x --all --yes", CHANGES, volatile=_REDRIVEN),
    Call("dlq ack -- readers --all -n"),
    Call("dlq ack -- %g|x --all --yes", CHANGES),
    Call("dlq export -- readers"),
    Call("retry browse -- readers"),
    Call("retry show -- readers {retry_id}"),
    Call("retry agenda"),
    Call("offset inspect"),
    Call("offset reset -- -g readers -t orders --to-earliest -n"),
    Call("offset reset -- -g %g|x -t orders --to-latest --yes", CHANGES),
    Call("offset undo -- --last -n"),
    Call("offset import -- {offsets} -n"),
    Call("offset delete -- -g readers -t orders -n"),
    Call("offset orphans"),
    Call("retry dead -- readers {retry_id} -n"),
    Call("retry now -- readers {retry_id} -n"),
    Call("offset inspect -- readers"),
    Call("offset list"),
    Call("offset history"),
    Call("offset diff -- readers %g|x"),
    Call("offset export"),
    Call("lag show"),
    Call("lag show -- --by queue"),
    Call("lag show -- --compare -1h"),
    Call("lag report -- --engine local --as-of 2030-01-01 -q", rows_at="groups", volatile=_TIMED),
    *(
        Call(f"lag report -- --by {by} --engine local --as-of 2030-01-01 -q")
        for by in ("group", "topic", "queue", "tag", "minute", "hour")
    ),
    Call("lag compact -- {history} -n"),
    Call("lag compact -- {history} --by day --yes", CHANGES),
    Call("lag histogram -- readers --of tag"),
    Call("lag risk -- --within 99d"),
    Call("bench produce -- made -c 9 --warm-up 0s", CHANGES, volatile=_MEASURED),
    Call("bench both -- made -c 9 --rate 2000/s --warm-up 0s", CHANGES, volatile=_MEASURED),
    Call("bench consume -- orders", volatile=_MEASURED),
    Call("broker status"),
    Call("broker config"),
    Call("broker config -- get brokerName autoCreateTopicEnable"),
    Call("broker config -- set fileReservedTime 24 -n"),
    Call("broker config -- set messageDelayLevel 7s --yes", CHANGES),
    Call("audit list"),
    Call("audit show -- 3"),
    Call("store init -- {new} --small", CHANGES),
    Call("store info"),
    Call("store fsck", rows_at="findings"),
    Call("store repair -- -n"),
    Call("store repair -- --only queue,index --yes", CHANGES),
    Call("store carve -- {new} -t orders -g readers -n"),
    Call("store carve -- {new} -t orders --yes", CHANGES),
    Call("store recover-offsets -- -n"),
    Call("store recover-offsets -- --overwrite --yes", CHANGES),
    Call("store rebuild -- queue -n"),
    Call("store rebuild -- index --yes", CHANGES),
    Call("store tail -- -e"),
    Call("store recover-config -- -n"),
    Call("store du"),
    Call("store du -- --by kind"),
    Call("store du -- --by group"),
    Call("store du -- --by day"),
    Call("store clean -- -n"),
    Call("store dump -- {queue}"),
    Call("store dump -- {queue} --as hex"),
    Call("store dump -- {log}"),
    Call("store snapshot -- --save {new}", CHANGES),
    Call("store snapshot -- --verify {snapshot}"),
    Call("store restore -- {snapshot} -n"),
    Call("store diff -- {snapshot} {other}"),
    Call("config show -- --where setting!=output"),
    Call("config show -- --origin --where setting!=output"),
    Call("config get -- tz"),
    Call("config set -- reason it's", CHANGES),
    Call("config path"),
    Call("context list"),
    Call("context show -- prod"),
    Call("context use -- prod", CHANGES),
    Call("context add -- new tz=UTC", CHANGES),
    Call("context rm -- prod", CHANGES),
    Call("explain -- UNIT_MISSING"),
    Call("cheat"),
    Call("cheat -- reset"),
    Call("mqadmin"),
    Call("doctor", volatile=frozenset({"found", "status", "advice"})),
    Call("version"),
)

WITHOUT_ROWS: Final = {
    "broker start": "runs until it is ended",
    "completion": "prints a script",
    "console": "needs a terminal: tests/rmqctl/console",
    "lag check": "speaks to monitors: nagios, prometheus, json",
    "lag record": "writes to a file",
    "lag watch": "goes on until it is ended",
    "lag warmup": "takes half a minute: tests/analytics/spark/test_warmup.py",
    "man": "prints a page",
    "message export": "writes messages to a file in forms of its own",
}
"""Commands that do not print rows and end."""
