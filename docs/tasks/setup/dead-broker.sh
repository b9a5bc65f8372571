# The folder of a broker that was killed while it served, and whose offsets file was torn by that;
# nothing of it may be written.
set -eu
repository=$(realpath "$0")
repository=${repository%/docs/tasks/setup/*}  # whose tests/ it uses
PYTHONPATH=$repository python - <<'PYTHON'
import sys
from pathlib import Path

from tests.support import golden

golden.extract("unclean-4.9", Path()).rename("old-disk")
config = Path("old-disk/config")
offsets = '{"offsetTable":{"GoldenLoadB@billing":{0:41,1:%d},"GoldenLoadC@billing":{0:21}}}'
(config / "consumerOffset.json.bak").write_text(offsets % 30)
(config / "consumerOffset.json").write_text((offsets % 44)[:40])
PYTHON
find old-disk -type f -exec chmod a-w {} +
