# The disks of two brokers. A topic of both was sent to every five minutes for ten hours; one group
# has read most of it, one has read from the first broker only. Yesterday's report is there, too.
set -eu
repository=$(realpath "$0")
repository=${repository%/docs/tasks/setup/*}  # whose tests/ it uses
for broker in broker-a broker-b; do
    mkdir -p "disks/$broker"
    python - $broker <<'PYTHON' > orders.jsonl
import json
import sys

for number in range(120 if sys.argv[1] == "broker-a" else 60):
    order = {"at": f"-{600 - number * 5}m", "topic": "orders", "queue": number % 2}
    print(json.dumps({**order, "tag": "paid" if number % 3 else "new", "body": f"order {number}"}))
PYTHON
    rmqctl store init "disks/$broker/store" --small --quiet > /dev/null
    rmqctl topic create orders --queues 2 --quiet -S "disks/$broker/store" > /dev/null
    PYTHONPATH=$repository python -m tests.support.aged_store "disks/$broker/store" < orders.jsonl
    for queue in 0 1; do  # how many come of which queue is chance otherwise
        rmqctl consume orders -g shipping -e -c 20 -Q $queue -S "disks/$broker/store" > /dev/null 2>&1
    done
done
rmqctl lag report --engine local -S 'disks/*/store' -o json --save yesterday.json --quiet
rmqctl consume orders -g billing -e -S disks/broker-a/store > /dev/null 2>&1
for queue in 0 1; do
    rmqctl consume orders -g billing -e -c 5 -Q $queue -S disks/broker-b/store > /dev/null 2>&1
    rmqctl consume orders -g shipping -e -c 15 -Q $queue -S disks/broker-a/store > /dev/null 2>&1
done
rm orders.jsonl
export TZ=UTC
