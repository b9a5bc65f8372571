# A store of three log files: orders with large bodies, some that failed, a group that has read half; two files are old.
set -eu
repository=$(realpath "$0")
repository=${repository%/docs/tasks/setup/*}  # whose tests/ it uses
python - <<'PYTHON' > orders.jsonl
import json

for number in range(330):
    order = {"at": f"-{100 - number // 5}h", "topic": "orders" if number % 3 else "images"}
    size = 1_000 if number % 3 else 380_000
    print(json.dumps({**order, "queue": 0, "body": f"order {number} ".ljust(size, ".")}))
PYTHON
rmqctl store init ./store --small --quiet > broker.conf
rmqctl topic create orders images --queues 1 --quiet > /dev/null
PYTHONPATH=$repository python -m tests.support.aged_store ./store < orders.jsonl
rmqctl consume orders -g billing -e -c 110 > /dev/null 2>&1
rmqctl consume images -g resize -e > /dev/null 2>&1
rm orders.jsonl
touch -d '-90 hours' store/commitlog/00000000000000000000
touch -d '-80 hours' store/commitlog/00000000000016777216
