"""What PySpark keeps of a session that has ended does not reach the next one."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession as Sql

from analytics.spark.session import SparkSession


@pytest.mark.long
def test_sql_of_a_second_session_speaks_to_its_own_jvm() -> None:
    for _ in range(2):
        with SparkSession("local[2]") as spark:
            sql = Sql(spark.context)
            frame = sql.range(5).selectExpr("id * 2 as twice").where("twice > 2")
            assert [row["twice"] for row in frame.collect()] == [4, 6, 8]
            assert Sql.builder.getOrCreate() is not None
            schema = sql.read.schema("a int, b string")
            assert schema is not None
