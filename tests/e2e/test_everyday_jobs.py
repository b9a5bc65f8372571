"""Forty jobs of an operator, as typed by a person who knows kcat, rpk, nats, kubectl and mqadmin.

Each job has the first wrong guesses with the hint that each gets, and the command line that does
the job: a shell line over the installed program. All jobs share one store.
"""

import json
import os
import random
import re
import shlex
import shutil
import struct
import subprocess
import sys
import zlib
from typing import NamedTuple

import pytest

from rmqctl.cli.tree import TREE
from storage.clock import now_ms
from tests.support import golden
from tests.support.cli import ROOT, run
from tests.support.examples import one_in

HOUR = 3_600_000
ORDERS, PAYMENTS, SPAN = 240, 40, 30 * HOUR


class Job(NamedTuple):
    """A job: wrong tries with a part of their hints, the right line, and what it prints."""

    name: str
    wrong: tuple[tuple[str, str], ...]
    right: str
    prints: str
    code: int = 0


JOBS = [
    Job(
        "why a group is stuck",
        (
            ("status", "did you mean 'broker status' or 'lag show'?"),
            ("group shipping", "did you mean 'group describe shipping'?"),
            ("group status shipping", "did you mean 'group why'?"),
        ),
        "rmqctl group why shipping",
        r"STATE\b.*\n(.*\n)*MESSAGE\b.*key order-",
    ),
    Job(
        "find an order, and who consumed it",
        (
            ("find order-17", "did you mean 'message search'?"),
            ("message get order-17", "'message query TOPIC -k order-17' finds a key"),
            ("message order-17", "did you mean 'message search order-17'?"),
        ),
        "rmqctl message life order-17",
        r"STORED(.*\n)+.*READ_PAST\tbilling",
    ),
    Job(
        "skip exactly one poison message",
        (
            ("skip order-17", "--shift-by 1"),
            ("offset skip -g packing", "did you mean 'offset reset --shift-by 1'?"),
        ),
        "rmqctl offset reset packing -t orders:1 --shift-by 1 -y -o tsv --no-headers "
        "--columns queue_id,old_offset,new_offset,applied",
        r"\A1\t0\t1\ttrue\n\Z",
    ),
    Job(
        "move a group to 09:30 on two of eight queues",
        (
            ("group seek shipping --to 09:30", "did you mean 'offset reset'?"),
            (
                "offset reset shipping -t orders --partitions 2,5 --to 09:30",
                "name the queues after the topic: -t TOPIC:2,5",
            ),
            ("offset reset shipping -t orders:2,5 --to 09:30", "the option is --to-datetime here"),
        ),
        "rmqctl offset reset shipping -t orders:2,5 --to-datetime 09:30 -n",
        r"(?m)^shipping\torders\t.*\n^shipping\torders\t",
    ),
    Job(
        "replay an hour, masked, into a test topic",
        (
            (
                "replay orders --from -2h",
                "'message export TOPIC | rmqctl message import - -t OTHER'",
            ),
            ("message export orders --mask email", "such as body=drop, json.PATH=hash"),
        ),
        "rmqctl message export orders --from -3h --mask json.customer.email=hash | "
        "rmqctl message import - masked -y -q && rmqctl consume masked -e -c 1",
        r'"email":"[0-9a-f]{12}"',
    ),
    Job(
        "the disk is full",
        (
            ("df", "did you mean 'store du'?"),
            ("store df", "did you mean 'store du'?"),
            ("prune", "did you mean 'store clean'?"),
            ("topic purge orders", "did you mean 'topic delete TOPIC' or"),
        ),
        "rmqctl store du",
        r"(?m)^topic\torders\t(.*\n)+reserved log\t",
    ),
    Job(
        "dead letters to a laptop",
        (
            ("store copy laptop", "did you mean 'store snapshot'?"),
            ("store carve laptop --dlq dead", "-t %DLQ%GROUP"),
            ("dlq export dead --save x", "dlq export GROUP -o jsonl > FILE"),
        ),
        "rmqctl store carve laptop -t %DLQ%dead --small -y -q >/dev/null && "
        "rmqctl -S laptop dlq list",
        r"(?m)^dead\t4\t",
    ),
    Job(
        "tail as JSON, filtered",
        (
            ("consume orders -f -o json", "-f takes a template, and -F follows"),
            ("consume orders -o beginning", "--offset start"),
            ("logs -f orders", "did you mean 'consume TOPIC -F'?"),
            ("consume orders --filter country=DE", "the option is --json-path here"),
        ),
        """rmqctl consume orders -F -c 2 -o jsonl --body json --json-path 'country = "DE"'""",
        r'"body":\{"id":"order-0","country":"DE"',
    ),
    Job(
        "a load of an even rate, with latencies",
        (
            ("perf", "did you mean 'bench produce'?"),
            ("bench --rate 500", "name the command first: 'bench produce' or 'bench both'"),
            ("bench produce --throughput 500", "the option is --rate here"),
        ),
        "rmqctl bench produce --rate 500/s -c 100 --size 100 -o json",
        r'"ack_us":',
    ),
    Job(
        "lag now against an hour ago",
        (
            ("lag diff -1h", "did you mean 'lag show --compare -1h'?"),
            ("lag history", "did you mean 'lag show --compare -1h'?"),
            ("lag show --since 1h", "the option is --compare here"),
        ),
        "rmqctl lag show --compare -1h",
        r"group\ttopic\tlag_then\tlag\tlag_change",
    ),
    Job(
        "an alert for cron",
        (
            ("lag alert shipping", "did you mean 'lag check'?"),
            ("lag check shipping --max 10", "the option is --crit-lag here"),
        ),
        "rmqctl lag check shipping --crit-lag 10",
        r"\ALAG CRITICAL - shipping in orders",
        2,
    ),
    Job(
        "send and read from Python",
        (),
        "python -c 'from rmqctl import EmbeddedBroker, Message, Producer\n"
        'with EmbeddedBroker.open("py", create=True), Producer.open("py", "p") as p:\n'
        '    print(p.send(Message("t", b"hi")).send_status)\'',
        r"SEND_OK",
    ),
    Job(
        "rows for a script",
        (
            ("get topics -o json", "did you mean 'topic list'?"),
            ("topic list --json", "the option is --output json here"),
            ("topic list -o name", "-o tsv --no-headers --columns FIELD"),
        ),
        "rmqctl topic list -o json",
        r'"topic":"orders"',
    ),
    Job(
        "completion of the shell",
        (
            ("completion", "a shell is bash, zsh, fish or powershell"),
            ("completion install", "one of bash, zsh, fish, powershell"),
        ),
        "rmqctl completion bash",
        r"source <\(rmqctl completion bash\)",
    ),
    Job(
        "two topics at once",
        (
            ("consume orders,payments", "did you mean 'orders payments'?"),
            ("consume -r '.*'", "name the topics: consume TOPIC TOPIC..."),
            ("store tail orders payments", "add --where 'topic = NAME'"),
        ),
        r"rmqctl consume orders payments -e -c 4 -f '%t\n'",
        r"\A(orders\npayments\n|payments\norders\n)",
    ),
    Job(
        "a topic into another store, with a new name",
        (
            ("topic copy orders other:o2", "'message export TOPIC | rmqctl message import -"),
            ("cp orders other/o2", "'message export TOPIC | rmqctl message import -"),
        ),
        "rmqctl -S other store init --small -q >/dev/null && rmqctl message export orders | "
        "rmqctl -S other message import - o2 -y -q && rmqctl -S other topic list",
        rf"(?m)^o2\t.*\t{ORDERS}$",
    ),
    Job(
        "count by a JSON field an hour",
        (
            ("message count orders", "did you mean 'message stats'?"),
            ("message stats orders --group-by country", "the option is --by here"),
            ("message stats orders --by country", "the field of a JSON body is json.country"),
        ),
        "rmqctl message stats orders --by hour,json.country",
        r"\Astart_timestamp\tvalue\tmessages.*\n20\S+\t(DE|FR|US|JP)\t\d+",
    ),
    Job(
        "duplicates by key",
        (
            ("message duplicates orders", "--by key --where 'messages > 1'"),
            ("message stats orders --by keys", "did you mean 'key'?"),
        ),
        "rmqctl message stats orders --by key --where 'messages > 1' --columns value,messages",
        r"value\tmessages\norder-199\t2\n",
    ),
    Job(
        "one queue into a file",
        (
            ("consume orders -p 3", "the option is --queue here"),
            ("consume orders:3", "did you mean 'orders' with -Q 3?"),
            ("topic drain orders:3", "did you mean 'message export TOPIC -Q N --save FILE'?"),
        ),
        "rmqctl message export orders -Q 3 --save q3.jsonl -q && wc -l q3.jsonl",
        rf"\A\s*{ORDERS // 8} ",
    ),
    Job(
        "the top five senders",
        (
            ("topic senders orders", "did you mean 'message stats -t TOPIC --by host'?"),
            ("producers orders", "did you mean 'message stats -t TOPIC --by host'?"),
        ),
        "rmqctl message stats orders --by host --limit 5 --no-headers",
        r"\A10\.0\.0\.1\t(.*\n){5}\Z",
    ),
    Job(
        "two groups compared",
        (
            ("group diff audit shipping", "did you mean 'offset diff'?"),
            ("group compare audit shipping", "did you mean 'offset diff'?"),
        ),
        "rmqctl offset diff audit shipping",
        r"offset_a\toffset_b\tdifference",
    ),
    Job(
        "freeze a group and let it go on",
        (
            ("group freeze audit", "did you mean 'group alter GROUP --no-consume-enable'?"),
            ("pause audit", "did you mean 'group alter GROUP --no-consume-enable'?"),
            ("group resume audit", "did you mean 'group alter GROUP --consume-enable'?"),
        ),
        "rmqctl group alter audit --no-consume-enable -y -q && "
        "rmqctl group alter audit --consume-enable -y -q && rmqctl group describe audit -o json",
        r'"consume_enable": ?true',
    ),
    Job(
        "one key to the dead letters and back",
        (
            ("dlq move fix -k order-8", "did you mean 'retry dead GROUP -k KEY'?"),
            ("retry dead fix order-8", "to select by key: -k order-8"),
        ),
        "rmqctl retry dead fix -k order-8 -y -q && "
        "rmqctl dlq redrive fix -k order-8 --target retry -y -q",
        r"%DLQ%fix(.*\n)+.*%RETRY%fix",
    ),
    Job(
        "what will be deleted tonight",
        (
            ("store clean --at 04:00", "'store du' shows what the next deletion frees"),
            ("store gc", "did you mean 'store clean'?"),
            ("topic retention orders", "did you mean 'store du'?"),
        ),
        "rmqctl store clean -n 2>&1",
        r"only its newest file|fileReservedTime",
    ),
    Job(
        "all messages of one trace",
        (
            ("message search traceId=tr-0003", "for a property: -H 'traceId=tr-0003'"),
            ("grep tr-0003", "did you mean 'message search'?"),
        ),
        "rmqctl message search -H traceId=tr-0003 --columns topic --no-headers",
        r"\A(orders\n|payments\n){6}",
    ),
    Job(
        "ten files as ten messages with a header",
        (
            ("produce docs docs/0.txt docs/1.txt", "-D '' sends one message per file"),
            ("produce docs --header a=b docs/0.txt", "the option is --property here"),
            ("produce docs --file docs/0.txt", "name the file: produce TOPIC FILE"),
        ),
        "rmqctl produce files -D '' -H source=import docs/*.txt 2>&1",
        r"sent 10 messages",
    ),
    Job(
        "an hour again, at a speed",
        (
            ("message replay orders", "'message export TOPIC | rmqctl message import -"),
            ("message import x.jsonl --rate 0.5", "--speed 0.5"),
            ("produce t --speed 0.5", "--speed needs the times of stored messages"),
        ),
        "rmqctl message export orders --from -3h --to -2h | "
        "rmqctl message import - again --speed 100000 2>&1",
        r"sent \d+ messages",
    ),
    Job(
        "a CSV with a header to keys and properties",
        (
            ("produce people people.csv --csv", "the option is --input csv here"),
            ("produce people --format csv people.csv", "the option is --input csv"),
            ("produce people people.csv --input csv", "--body-field COLUMN names the column"),
        ),
        "rmqctl produce people people.csv --input csv --key-field id --body-field note -q && "
        "rmqctl consume people -e -o jsonl -c 1",
        r'"keys":\["A1"\],"body":"hello, one".*"country":"DE"',
    ),
    Job(
        "one failing message, by hand",
        (
            ("message retry order-16 -g fix", "'retry now GROUP -k KEY'"),
            ("retry ack fix order-16", "'retry dead GROUP ID' or 'dlq ack GROUP ID'"),
            ("dlq show dead", "'rmqctl dlq browse GROUP' lists ids"),
        ),
        "rmqctl retry now fix -k order-16 -y -q && rmqctl consume orders -g fix -e -q "
        "--exec 'grep -q order' && rmqctl retry browse fix",
        r"\A(?!(.*\n)*.*\torder-16\t(?!.*READ))",
    ),
    Job(
        "one queue, watched",
        (
            ("topic watch orders", "did you mean 'consume TOPIC -F'?"),
            ("lag watch -Q 3", "'consume TOPIC -Q N -F' reads one"),
        ),
        "rmqctl consume orders -Q 3 --last 1 -F -c 1",
        rf'"order-{ORDERS - 5}"',
    ),
    Job(
        "an alert when the oldest unread message is older than 5 minutes",
        (
            ("lag check shipping --max-age 5m", "the option is --crit-age here"),
            ("lag check shipping --older-than 5m", "the option is --crit-age here"),
        ),
        "rmqctl lag check shipping --crit-age 5m",
        r"LAG CRITICAL - shipping in orders: age",
        2,
    ),
    Job(
        "a redacted store for a colleague",
        (
            ("store redact out", "store carve OUT -t TOPIC --mask RULES"),
            ("store snapshot out --mask email", "store carve OUT -t TOPIC --mask RULES"),
            ("store carve out --mask keys=hash", "give --topic or --group"),
        ),
        "rmqctl store carve redacted -t orders --mask json.customer.email=hash --small -y -q "
        ">/dev/null && ! grep -rq example.com redacted && rmqctl -S redacted topic list",
        rf"(?m)^orders\t.*\t{ORDERS}$",
    ),
    Job(
        "a fresh store for each test",
        (("-S fresh-1 produce t", "make one with 'rmqctl store init"),),
        "rmqctl -S fresh store init fresh --small -q >/dev/null && "
        "echo hi | rmqctl -S fresh produce t -q >/dev/null && rmqctl -S fresh consume t -e",
        r"\Ahi\n\Z",
    ),
    Job(
        "a script that fails when anything is unknown",
        (
            ("lag show --strict", "'lag check' exits with 3 where the lag is unknown"),
            ("--fail-on-unknown lag show", "'lag check' exits with 3 where the lag is unknown"),
        ),
        "rmqctl lag check nope",
        r"\ALAG UNKNOWN",
        3,
    ),
    Job(
        "undo the last change",
        (
            ("undo", "did you mean 'offset undo'?"),
            ("rollback", "did you mean 'offset undo --last'?"),
            ("offset undo", "or give --last"),
            ("offset undo last", "the last change is --last"),
        ),
        "rmqctl offset reset audit -t orders:0 --to-earliest -y -q && "
        "rmqctl offset undo --last -y -o tsv --no-headers --columns group,applied",
        r"audit\ttrue\n\Z",
    ),
    Job(
        "what an exit code means",
        (("help exit codes", "did you mean 'explain exit codes'?"),),
        "rmqctl explain rc 7",
        r"A safety rule refused",
    ),
    Job(
        "complete a group with a space in its name",
        (),
        "export RMQCTL_STORE=$PWD/blank; _RMQCTL_COMPLETE=bash rmqctl group why my; "
        "rmqctl group why 'my group'",
        r"\Amy group\b(.*\n)+STATE\t",
    ),
    Job(
        "two stores at once",
        (
            ("topic list -S a -S b", "compare two with 'store diff A B'"),
            ("config use-context a", "did you mean 'context use'?"),
            ("context create a", "did you mean 'context add NAME --store DIR'?"),
        ),
        'rmqctl context add one --store "$RMQCTL_STORE" -q >/dev/null && '
        "env -u RMQCTL_STORE rmqctl --context one topic list",
        r"(?m)^orders\t",
    ),
    Job(
        "page through dead letters",
        (
            ("dlq browse dead --page 2", "--where 'queue_offset > LAST' with --limit N"),
            ("dlq browse dead --offset 2", "--where 'queue_offset > LAST' with --limit N"),
        ),
        "rmqctl dlq browse dead --where 'queue_offset > 1' --limit 2 --columns queue_offset "
        "--no-headers",
        r"\A2\n3\n\Z",
    ),
    Job(
        "a store in a container's volume",
        (
            ("--container rmq topic list", "where the volume of the container is mounted"),
            ("-S docker://rmq topic list", "a store is a folder"),
            ("-S volume topic list", "a store lies below it"),
        ),
        "rmqctl -S volume/store topic list",
        r"(?m)^TopicTest\S*\t|normal",
    ),
]


def record(topic: str, offset: int, body: bytes, time: int, properties: str, host: int, queue: int):
    """A record of RocketMQ's log, for ``message import --keep-times``."""
    named = topic.encode()
    data = struct.pack(
        ">iIIiiqqiq", 0, 0xDAA320A7, zlib.crc32(body) & 0x7FFFFFFF, queue, 0, offset, 0, 0, time
    )
    data += bytes([10, 0, 0, host]) + struct.pack(">iq", 40000, time)
    data += bytes([127, 0, 0, 1]) + struct.pack(">iiq", 10911, 0, 0)
    data += struct.pack(">i", len(body)) + body + bytes([len(named)]) + named
    data += struct.pack(">h", len(properties)) + properties.encode()
    return struct.pack(">i", len(data)) + data[4:]


def log_of_orders() -> bytes:
    """Orders in eight queues and payments in four, over thirty hours; one key comes twice."""
    random.seed(7)
    now, rows = now_ms() - 60_000, []
    for i in range(ORDERS):
        body = {
            "id": f"order-{i}",
            "country": ("DE", "FR", "US", "JP")[i % 4],
            "customer": {"email": f"ann{i}@example.com"},
        }
        key = "order-199" if i == 200 else f"order-{i}"
        named = f"KEYS\x01{key}\x02TAGS\x01new\x02traceId\x01tr-{i // 5:04d}\x02"
        time = now - SPAN + SPAN * i // ORDERS
        host = 1 if i % 3 else 1 + i % 7
        rows.append((time, "orders", i // 8, json.dumps(body).encode(), named, host, i % 8))
    for i in range(PAYMENTS):
        named = f"KEYS\x01pay-{i}\x02traceId\x01tr-{i * 6 // 5:04d}\x02"
        time = now - SPAN + SPAN * i // PAYMENTS + 1
        rows.append((time, "payments", i // 4, b'{"sum": %d}' % i, named, 1, i % 4))
    return b"".join(record(t, o, b, at, p, h, q) for at, t, o, b, p, h, q in sorted(rows))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a store of orders, groups, retries and dead letters, and its environment."""
    folder = tmp_path_factory.mktemp("jobs")
    store = folder / "store of the shop"
    programs = folder / "bin"
    programs.mkdir()
    for name, words in (("rmqctl", "-P -m rmqctl"), ("python", "")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        program.chmod(0o755)
    env = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "RMQCTL_STORE": str(store),
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
    }
    (folder / "log.raw").write_bytes(log_of_orders())

    def did(*words: object) -> None:
        result = run(*words, "-q", env=env, cwd=folder)
        assert result.code in (0, 1), result.err

    did("store", "init", store, "--small")
    did("topic", "create", "orders", "--queues", 8)
    did("topic", "create", "payments", "--queues", 4)
    did("message", "import", "log.raw", "--keep-times")
    did("consume", "orders", "-g", "billing", "-e")
    for group, count in (("audit", 60), ("shipping", 120)):
        did("consume", "orders", "-g", group, "-e", "-c", count)
    did("offset", "reset", "packing", "--new-group", "-t", "orders", "--to-earliest", "-y")
    fails = ("-e", "--exec", "false")
    did("consume", "orders", "-g", "dead", "-c", 4, *fails, "--max-reconsume-times", 0)
    did("consume", "orders", "-g", "fix", "-c", 3, "-Q", 0, *fails, "--delay-level", 17)
    # A Java broker may have been given such a name by a file that was edited.
    blank = folder / "blank"
    shutil.copytree(store, blank, ignore=shutil.ignore_patterns("rmqctl"))
    offsets = blank / "config" / "consumerOffset.json"
    offsets.write_text(offsets.read_text().replace("@audit", "@my group"))
    docs = folder / "docs"
    docs.mkdir()
    for i in range(10):
        (docs / f"{i}.txt").write_text(f"document {i}\nline 2\n")
    (folder / "people.csv").write_text('id,country,note\nA1,DE,"hello, one"\nA2,FR,two\n')
    (folder / "x.jsonl").write_text("")
    (folder / "volume").mkdir()
    (folder / "volume" / "store").symlink_to(golden.store("basic-4.9"))
    return folder, env


@pytest.mark.parametrize("job", JOBS, ids=[job.name for job in JOBS])
@pytest.mark.slow
def test_a_wrong_guess_has_a_hint(place, job):
    folder, env = place
    for line, hint in job.wrong:
        result = run(*shlex.split(line), env=env, cwd=folder, stdin=b"")
        assert hint in result.err, f"{line}: {result.err}"
        assert result.code != 0 or "did you mean" not in hint


@pytest.mark.parametrize("job", one_in(3, JOBS), ids=[job.name for job in JOBS])
@pytest.mark.slow
def test_the_job_is_done(place, job):
    folder, env = place
    done = subprocess.run(
        ["/bin/bash", "-o", "pipefail", "-c", job.right],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        text=True,
    )
    assert done.returncode == job.code, done.stderr + done.stdout
    assert re.search(job.prints, done.stdout), done.stdout + done.stderr


def test_there_are_forty_jobs():
    assert len(JOBS) == len({job.name for job in JOBS}) == 40
    for job in JOBS:
        for words in re.findall(r"(?<!from )rmqctl (?:-S \S+ )?([a-z]+)", job.right):
            assert words in TREE
