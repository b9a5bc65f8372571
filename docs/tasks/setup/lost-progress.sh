# A store with two groups; then a power loss takes the files of progress, and a hand cuts the topics.
set -eu
rmqctl store init ./store --small --quiet > broker.conf
rmqctl topic create orders --queues 2 --quiet > /dev/null
for number in $(seq 0 19); do echo "order $number"; done > lines
rmqctl produce orders --queue 0 lines 2> /dev/null
rmqctl produce orders --queue 1 lines 2> /dev/null
rmqctl consume orders -g billing -e > /dev/null 2>&1
rmqctl consume orders -g shipping -e -c 12 -Q 0 > /dev/null 2>&1
rmqctl offset reset -g shipping -t orders:0 --to-offset 5 --yes --quiet > /dev/null
rm lines store/rmqctl/offsets.log store/rmqctl/offsets.json
python - <<'PYTHON'
from pathlib import Path

config = Path("store/config")
offsets = config / "consumerOffset.json"
text = offsets.read_text()
offsets.write_text(text[: text.index('"orders@shipping"')])
(config / "consumerOffset.json.bak").unlink(missing_ok=True)
topics = config / "topics.json"
text = topics.read_text()
topics.write_text(text[: text.index('"orders"') + 60])
(config / "topics.json.bak").unlink(missing_ok=True)
PYTHON
