# A store with eight orders in ./store, and damage in the middle of its log: a bit of the third order's head,
# and the body of the fifth. Run it in an empty folder.
set -eu
rmqctl -q store init store --small
rmqctl -q topic create orders --queues 1 --yes
for number in 1 2 3 4 5 6 7 8; do echo "order $number"; done | rmqctl -q produce orders
python - <<'EOF'
from pathlib import Path

log = next(Path("store/commitlog").iterdir())
data = log.read_bytes()[: 1 << 16]
head = data.index(b"order 3") - 88
body = data.index(b"order 5")
with log.open("r+b") as file:
    file.seek(head + 5)  # of the magic code
    file.write(bytes((data[head + 5] ^ 1,)))
    file.seek(body)
    file.write(b"XX")
EOF
