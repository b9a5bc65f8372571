# A store whose topic was sent to each half hour of 30 and 31 January 2026, and a group that has read it all.
set -eu
repository=$(realpath "$0")
repository=${repository%/docs/tasks/setup/*}  # whose tests/ it uses
python - <<'PYTHON' > orders.jsonl
import json

for number in range(64):
    day, half_hour = divmod(number, 48)
    at = f"2026-01-{30 + day}T{half_hour // 2:02}:{half_hour % 2 * 30:02}:00Z"
    order = {"at": at, "topic": "orders", "queue": number % 2, "key": f"order-{number}"}
    print(json.dumps({**order, "tag": "paid" if number % 4 else "new", "body": f"order {number}"}))
PYTHON
rmqctl store init ./store --small --quiet > broker.conf
rmqctl topic create orders --queues 2 --quiet > /dev/null
PYTHONPATH=$repository python -m tests.support.aged_store ./store < orders.jsonl
rmqctl consume orders -g billing -e > /dev/null 2>&1
export TZ=UTC
