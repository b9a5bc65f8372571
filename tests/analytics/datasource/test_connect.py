"""Spark Connect: the client only plans; the server's workers read and write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from analytics.datasource.shipping import zip_packages
from analytics.spark.home import spark_home
from analytics.spark.java import find_java
from tests.interop.network import free_ports
from tests.support import golden
from tests.support.bare_python import bare_python
from tests.support.cli import ROOT, run
from tests.support.spark_source import read_table
from tests.support.standalone import short_lived

pytestmark = [pytest.mark.long, pytest.mark.spark]
CLIENT = """
import json, sys, time
from pyspark.sql import SparkSession

address, shipped, store, copy, out = sys.argv[1:]
for attempt in range(200):
    try:
        spark = SparkSession.builder.remote(address).getOrCreate()
        spark.range(1).count()
        break
    except Exception:  # the client has an error of its own for each state of a starting server
        if attempt == 199:
            raise
        time.sleep(0.3)
if shipped:
    spark.addArtifact(shipped, pyfile=True)
    import pyspark_rocketmq
    pyspark_rocketmq.register(spark)
messages = spark.read.format("rocketmq").load(store)
names = ["topic", "queue_id", "queue_offset", "msg_id", "body_size"]
seen = {"rows": [list(row) for row in messages.select(*names).collect()]}
some = messages.where("topic = 'GoldenFour' and queue_offset < 3").count()
seen["some"] = [some, messages.where("topic = 'GoldenFour'").count()]
chosen = messages.where("body_size > 0").selectExpr("'copied' as topic", "body", "tags")
chosen.write.format("rocketmq").mode("append").save(copy)
with open(out + "/seen.json", "w") as file:
    json.dump(seen, file)
query = (
    spark.readStream.format("rocketmq").load(store).select(*names)
    .writeStream.format("parquet").option("path", out + "/rows")
    .option("checkpointLocation", out + "/place").trigger(availableNow=True).start()
)
query.awaitTermination()
seen["streamed"] = spark.read.parquet(out + "/rows").count()
with open(out + "/seen.json", "w") as file:
    json.dump(seen, file)
"""


@pytest.fixture(params=["installed", "placed", "shipped"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A server, and the zip that the client has to ship; none where its workers have rmqctl.

    They have it installed, or as a zip on their path that is there when the server starts.
    """
    for name in ("grpc", "grpc_status"):
        if find_spec(name) is None:
            pytest.skip("needs the packages of pyspark[connect]")
    home = spark_home(find_java())
    port, _ = free_ports()
    installed = request.param == "installed"
    python = sys.executable if installed else str(bare_python(tmp_path / "bare"))
    environment = {name: os.environ[name] for name in os.environ if not name.startswith("PYTHON")}
    zipped = zip_packages(tmp_path / "rmqctl.zip")
    if request.param != "shipped":
        environment["PYTHONPATH"] = str(ROOT) if installed else zipped
    with (tmp_path / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [
                str(home.path / "bin" / "spark-submit"),
                *("--master", "local[2]", "--class"),
                "org.apache.spark.sql.connect.service.SparkConnectServer",
                *("--conf", f"spark.connect.grpc.binding.port={port}"),
                *("--conf", "spark.connect.grpc.binding.address=127.0.0.1"),
                *("--conf", "spark.ui.enabled=false"),
                "spark-internal",
            ],
            cwd=tmp_path,
            env={
                **environment,
                "SPARK_HOME": str(home.path),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "PYSPARK_PYTHON": python,
                **short_lived(tmp_path),
            },
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield f"sc://127.0.0.1:{port}", zipped if request.param == "shipped" else ""
    finally:
        process.kill()
        process.wait()


def test_a_client_reads_writes_and_streams(server: tuple[str, str], tmp_path: Path) -> None:
    address, shipped = server
    store, copy, out = golden.store("basic-4.9"), tmp_path / "copy", tmp_path / "out"
    assert run("store", "init", copy, "--small", "-q").code == 0
    out.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, address, shipped, str(store), str(copy), str(out)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    log = (tmp_path / "server.log").read_text()
    # Spark 4.3 plans a stream without what the client has shipped.
    assert done.returncode == (1 if shipped else 0), done.stderr[-3000:] + log[-3000:]
    seen: dict[str, Any] = json.loads((out / "seen.json").read_text())
    names = ("topic", "queue_id", "queue_offset", "msg_id", "body_size")
    own = [[row[name] for name in names] for row in read_table("messages", store)]
    assert sorted(seen["rows"]) == sorted(own)
    four = [row for row in own if row[0] == "GoldenFour"]
    assert seen["some"] == [len([row for row in four if row[2] < 3]), len(four)]
    assert seen.get("streamed") == (None if shipped else len(own))
    assert ("No module named 'analytics'" in done.stderr) == bool(shipped)
    copied = run("consume", "copied", "-e", "-S", copy, "-o", "jsonl")
    assert len(copied.lines) == len([row for row in own if row[4]])
