# A topic that was sent to every ten minutes for eight hours, and three groups: one has read
# everything, one stopped two hours ago, one has never got beyond its first messages.
set -eu
repository=$(realpath "$0")
repository=${repository%/docs/tasks/setup/*}  # whose tests/ it uses
python - <<'PYTHON' > orders.jsonl
import json

for number in range(48):
    order = {"at": f"-{480 - number * 10}m", "topic": "orders", "queue": number % 2}
    print(json.dumps({**order, "tag": "paid" if number % 4 else "new", "body": f"order {number}"}))
PYTHON
rmqctl store init ./store --small --quiet > broker.conf
rmqctl topic create orders --queues 2 --quiet > /dev/null
PYTHONPATH=$repository python -m tests.support.aged_store ./store < orders.jsonl
rmqctl consume orders -g billing -e > /dev/null 2>&1
for queue in 0 1; do  # how many come of which queue is chance otherwise
    rmqctl consume orders -g shipping -e -c 18 -Q $queue > /dev/null 2>&1
done
rmqctl consume orders -g audit -e -c 4 -Q 0 > /dev/null 2>&1
# What the consumers of those two hours would have left.
PYTHONPATH=$repository python - <<'PYTHON'
import time
from pathlib import Path

from storage.configs.progress import ProgressFile
from storage.configs.offset_samples import OffsetSamples

store = Path("store")
offsets = ProgressFile(store).read().offsets()
ends = {"orders": {0: 24, 1: 24}}
OffsetSamples(store).append(offsets, ends, int(time.time() * 1000) - 7_200_000)
PYTHON
export TZ=UTC
