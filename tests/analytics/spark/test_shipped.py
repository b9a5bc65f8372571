"""A cluster that has not installed rmqctl: its workers have only what spark-submit ships."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from analytics.datasource.shipping import PACKAGES, zip_packages
from analytics.spark.home import spark_home
from analytics.spark.java import find_java
from tests.support import golden
from tests.support.bare_python import bare_python
from tests.support.cli import ROOT, run
from tests.support.spark_source import read_table
from tests.support.standalone import short_lived, standalone

IMPORTS = """
import json, sys
sys.path.insert(0, sys.argv[1])
import analytics.datasource.source, analytics.sink.writer, analytics.__main__
import pyspark_rocketmq
from storage import native
names = {"analytics", "broker", "client", "pyspark_rocketmq", "rmqctl", "storage"}
found = {
    name: module.__file__ for name, module in sys.modules.items() if name.partition(".")[0] in names
}
print(json.dumps([native.compiled is None, sorted(set(sys.modules) & names), found]))
"""


@pytest.fixture(scope="module")
def zipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shipped") / "rmqctl.zip"
    done = subprocess.run(
        [sys.executable, "-m", "pyspark_rocketmq", str(path)],
        cwd=path.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"wrote {path}: {', '.join(PACKAGES)}\n"
    return path


@pytest.mark.slow
def test_the_zip_has_all_that_workers_import_and_nothing_compiled(zipped: Path) -> None:
    with zipfile.ZipFile(zipped) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0] for name in names} == set(PACKAGES)
    assert not [name for name in names if name.endswith((".so", ".pyc", ".c"))]
    done = subprocess.run(
        [sys.executable, "-I", "-c", IMPORTS, str(zipped)],
        capture_output=True,
        text=True,
        check=True,
    )
    is_plain, packages, files = json.loads(done.stdout)
    assert is_plain
    assert packages == sorted(PACKAGES)
    assert [name for name, file in files.items() if not str(file).startswith(str(zipped))] == []


@pytest.mark.slow
def test_the_zip_is_the_same_each_time(zipped: Path, tmp_path: Path) -> None:
    again = Path(zip_packages(tmp_path / "again.zip"))
    assert again.read_bytes() == zipped.read_bytes()


APPLICATION = """
import json, sys
import pyspark_rocketmq
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
pyspark_rocketmq.register(spark)
store, copy, out = sys.argv[1:]
messages = spark.read.format("rocketmq").load(store)
rows = messages.select("topic", "queue_id", "queue_offset", "msg_id", "body_size").collect()
lag = spark.read.format("rocketmq").option("table", "lag").load(store).count()

def about(_):
    import sys
    import storage
    from storage import native
    return [(vars(storage)["__file__"], native.compiled is None, sys.executable)]

workers = spark.sparkContext.parallelize(range(2), 2).flatMap(about).distinct().collect()
chosen = messages.where("body is not null").selectExpr("'copied' as topic", "body", "tags")
chosen.write.format("rocketmq").mode("append").save(copy)
with open(out, "w") as file:
    json.dump({"rows": [list(row) for row in rows], "lag": lag, "workers": workers}, file)
spark.stop()
"""


@pytest.mark.long
@pytest.mark.spark
def test_a_submitted_program_reads_and_writes_there(zipped: Path, tmp_path: Path) -> None:
    store, copy = golden.store("basic-4.9"), tmp_path / "copy"
    assert run("store", "init", copy, "--small", "-q").code == 0
    python = bare_python(tmp_path / "bare")
    program, out = tmp_path / "program.py", tmp_path / "out.json"
    program.write_text(APPLICATION)
    java = find_java()
    home = spark_home(java)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTHON")
    }
    environment |= {
        "SPARK_HOME": str(home.path),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": str(python),
        **short_lived(tmp_path),
    }
    with standalone(tmp_path / "cluster", {"PYSPARK_PYTHON": str(python)}) as master:
        done = subprocess.run(
            [
                str(home.path / "bin" / "spark-submit"),
                *("--master", master, "--py-files", str(zipped)),
                *("--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.ui.enabled=false"),
                *(str(program), str(store), str(copy), str(out)),
            ],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    seen = json.loads(out.read_text())
    ((place, is_plain, executable),) = seen["workers"]
    assert "rmqctl.zip" in place
    assert is_plain
    assert executable == str(python)
    names = ("topic", "queue_id", "queue_offset", "msg_id", "body_size")
    own = [[row[name] for name in names] for row in read_table("messages", store)]
    assert len(own) > 100
    assert sorted(seen["rows"]) == sorted(own)
    assert seen["lag"] > 0
    copied = run("consume", "copied", "-e", "-S", copy, "-o", "jsonl")
    assert len(copied.lines) == len(own)
