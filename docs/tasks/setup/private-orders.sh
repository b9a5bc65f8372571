# A store with a topic of ten orders, in whose bodies and keys customers are named, stored an hour
# ago; a group has read six of them, and given one of these up.
set -eu
repository=$(realpath "$0")
repository=${repository%/docs/tasks/setup/*}  # whose tests/ it uses
python - <<'PYTHON' > orders.jsonl
import json

for number in range(10):
    customer = ("ann", "bob", "eve")[number % 3]
    body = {"order": number, "who": {"mail": f"{customer}@example.org"}, "total": 100 + number}
    order = {"at": f"-{60 - number}m", "topic": "orders", "queue": number % 2, "tag": "paid"}
    print(json.dumps({**order, "key": f"{customer} o-{number}", "body": json.dumps(body)}))
PYTHON
rmqctl store init ./store --small --quiet > broker.conf
rmqctl topic create orders --queues 2 --quiet > /dev/null
PYTHONPATH=$repository python -m tests.support.aged_store ./store < orders.jsonl
for queue in 0 1; do
    rmqctl consume orders -g shipping -e -c 3 -Q $queue --from-where first --quiet > /dev/null
done
rm orders.jsonl
export TZ=UTC
