"""Homes that nothing uses any more are removed, others never."""

from __future__ import annotations

import os
from pathlib import Path

import pyspark

from analytics.spark.home import remove_unused, spark_home
from analytics.spark.java import Java

DAY_S = 86_400


def java(folder: Path, name: str) -> Java:
    return Java(folder / name / "bin" / "java", 21, "JAVA_HOME", "21.0.1")


def test_homes_of_a_pyspark_that_has_gone_or_not_used_for_a_month(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    ours, other, old, gone = (
        spark_home(java(tmp_path, name), environ) for name in ("a", "b", "c", "d")
    )
    assert len({home.path for home in (ours, other, old, gone)}) == 4
    now = (ours.path / "bin" / "spark-submit").stat().st_mtime
    os.utime(old.path / "bin" / "spark-submit", (now - 40 * DAY_S, now - 40 * DAY_S))
    (old.path / "classes.jsa").touch()
    (gone.path / "jars").unlink()
    (gone.path / "jars").symlink_to(tmp_path / "nowhere")
    others = tmp_path / "rmqctl" / "spark-of-somebody"
    others.mkdir()
    assert sorted(remove_unused(ours, now)) == sorted([old.path, gone.path])
    assert sorted(ours.path.parent.iterdir()) == sorted([ours.path, other.path, others])
    assert remove_unused(ours, now + 31 * DAY_S) == [other.path]


def test_a_home_that_is_used_stays(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    ours, other = (spark_home(java(tmp_path, name), environ) for name in "ab")
    submit = other.path / "bin" / "spark-submit"
    now = submit.stat().st_mtime
    os.utime(submit, (now - 40 * DAY_S, now - 40 * DAY_S))
    spark_home(java(tmp_path, "b"), environ)  # as each start does
    assert remove_unused(ours, now) == []


def test_the_jars_are_those_of_the_installed_pyspark(tmp_path: Path) -> None:
    home = spark_home(java(tmp_path, "a"), {"XDG_CACHE_HOME": str(tmp_path)})
    assert (home.path / "jars").resolve() == Path(pyspark.__file__).resolve().parent / "jars"
