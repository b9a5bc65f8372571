# A store of a real broker (Java, 4.9) in ./store: a file of a queue is gone, and an index file is
# half zeros. Run it in an empty folder.
set -eu
repository=$(realpath "$0")
repository=${repository%/docs/tasks/setup/*}  # whose tests/ it uses
PYTHONPATH=$repository python - <<'EOF'
from pathlib import Path
from tests.support import golden

root = golden.extract("hole-4.9", Path("."))
root.rename("store")
newest = max(Path("store/index").iterdir())
with newest.open("r+b") as file:
    file.seek(440)  # after 100 slots
    file.write(bytes(3000))
EOF
