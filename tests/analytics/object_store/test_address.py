"""Addresses of object stores: what names one, and what of it may be shown."""

from __future__ import annotations

import pytest

from analytics.errors import NotAFolderError
from analytics.object_store.address import (
    folder_of,
    for_pyarrow,
    is_address,
    shown,
    without_secrets,
)
from analytics.report.stores import StoreRef, find_stores

ADDRESS = "s3a://AKIA123:se%2Fcret@bucket/x/broker-a/store/?region=eu&session_token=tok12345"


@pytest.mark.parametrize("scheme", ["s3", "s3a", "S3A", "gs", "gcs", "abfs", "abfss", "hdfs"])
def test_these_schemes_are_addresses(scheme: str) -> None:
    assert is_address(f"{scheme}://host/store")


@pytest.mark.parametrize(
    "path", ["/s3/x", "s3", "s3:/x", "./s3://x", "file:///x", "oss://b/x", "wasbs://c@a/x"]
)
def test_these_are_none(path: str) -> None:
    assert not is_address(path)


def test_what_is_shown_has_neither_credentials_nor_a_query() -> None:
    assert shown(ADDRESS) == "s3a://bucket/x/broker-a/store"
    assert for_pyarrow(ADDRESS) == (
        "s3://AKIA123:se%2Fcret@bucket/x/broker-a/store?region=eu&session_token=tok12345"
    )
    assert folder_of(ADDRESS) == "/x/broker-a/store"
    assert folder_of("hdfs://nn:8020/a%20b/") == "/a b"
    azure = "abfs://container:p4ssw0rd@account.dfs.core.windows.net/x"
    assert shown(azure) == "abfs://container@account.dfs.core.windows.net/x"
    assert without_secrets("container p4ssw0rd", azure) == "container ***"


def test_texts_of_other_programs_lose_the_secrets() -> None:
    text = f"cannot parse '{for_pyarrow(ADDRESS)}', key AKIA123, secret se/cret, tok12345 in eu"
    assert without_secrets(text, ADDRESS) == (
        "cannot parse 's3a://bucket/x/broker-a/store', key ***, secret ***, *** in eu"
    )


def test_a_store_is_called_after_its_folder_and_lists_have_addresses() -> None:
    other = "s3://K:SECRET9@bucket/y/broker-a/store"
    assert find_stores([ADDRESS], addresses=True) == [StoreRef("broker-a", ADDRESS)]
    names = [ref.broker for ref in find_stores([ADDRESS, other], addresses=True)]
    assert names == ["s3a://bucket/x/broker-a/store", "s3://bucket/y/broker-a/store"]


def test_where_folders_are_wanted_an_address_is_refused_without_its_secrets() -> None:
    with pytest.raises(NotAFolderError) as error:
        find_stores([ADDRESS])
    assert "s3a://bucket/x/broker-a/store: stores are read from folders" in str(error.value)
    assert "Spark's source 'rocketmq' reads it there" in str(error.value)
    assert "se%2Fcret" not in str(error.value)
