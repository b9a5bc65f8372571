"""Objects through pyarrow: lists of several pages, ranges, and one sentence for each failure."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from analytics.errors import ObjectStoreError
from analytics.object_store.objects import ObjectInfo, Objects
from analytics.object_store.parallel import THREADS, NoAnswerError, in_parallel
from tests.support.s3_server import KEY, SECRET, S3Server, cut, gone, refused, serving, silent

NAMES = ["config/topics.json", "consumequeue/%RETRY%a b+c/0/00000000000000000000"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    root = tmp_path_factory.mktemp("objects")
    for number in range(250):
        (root / f"{number:03}").write_bytes(bytes(number))
    for name in NAMES:
        (root / name).parent.mkdir(parents=True)
        (root / name).write_bytes(bytes(range(256)) * 100)
    with serving({"st": root}) as server:
        yield server


@pytest.fixture(autouse=True)
def _no_failures(server: S3Server) -> None:
    server.answers.clear()
    server.asked.clear()


def test_a_list_of_several_pages_has_all_names_and_sizes(server: S3Server) -> None:
    found = Objects(server.address("st")).listed()
    files = {name: info.size for name, info in found.items() if not info.is_folder}
    assert files == {f"{n:03}": n for n in range(250)} | dict.fromkeys(NAMES, 25_600)
    assert server.counts() == {"LIST": 3}


def test_ranges_are_those_that_were_asked_for(server: S3Server) -> None:
    objects = Objects(server.address("st", "s3a"))
    data = bytes(range(256)) * 100
    for name in NAMES:
        assert bytes(objects.read(name, 1000, 1300)) == data[1000:1300]
    assert server.ranges() == [(1000, 1300)] * 2
    assert objects.whole({name: ObjectInfo(25_600, 0) for name in NAMES}) == dict.fromkeys(
        NAMES, data
    )


def test_an_object_is_still_the_same_or_is_not(server: S3Server) -> None:
    objects = Objects(server.address("st"))
    listed = objects.listed()
    now = objects.now(["007", "nothing"])
    assert now["nothing"] is None
    assert listed["007"].is_still(now["007"])
    assert not listed["008"].is_still(now["007"])
    assert not listed["007"].is_still(None)


def read_all(address: str) -> None:
    objects = Objects(address)
    objects.listed()
    objects.whole({NAMES[0]: ObjectInfo(25_600, 0)})


FAILURES = {
    "nothing there": (r"s3://bucket/none: there is nothing at this address$", None, ""),
    "no permission to list": (r"s3://bucket/st: .*ACCESS_DENIED", refused, "LIST"),
    "no permission": (r"s3://bucket/st: .*ACCESS_DENIED.*HeadObject", refused, "topics.json"),
    "gone": (r"s3://bucket/st/config/topics.json: it is not there any more$", gone, "topics.json"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_is_one_sentence_without_credentials(server: S3Server, failure: str) -> None:
    said, answer, key = FAILURES[failure]
    if answer is not None:
        server.answers[key] = answer
    with pytest.raises(ObjectStoreError) as error:
        read_all(server.address("none" if answer is None else "st"))
    text = str(error.value)
    assert re.search(said, text)
    assert "\n" not in text
    assert KEY not in text
    assert SECRET not in text


@contextmanager
def ending(server: S3Server) -> Iterator[None]:
    """Let answers that wait end afterwards, in a way after which no library tries again."""
    try:
        yield
    finally:
        server.released.set()


def test_a_store_that_does_not_answer_is_not_waited_for_for_ever(server: S3Server) -> None:
    server.answers[NAMES[0]] = silent
    objects = Objects(server.address("st"), patience_s=0.3)
    with (
        ending(server),
        pytest.raises(ObjectStoreError, match=r"^s3://bucket/st: no answer for 0.3 seconds$"),
    ):
        objects.whole({NAMES[0]: ObjectInfo(25_600, 0)})


def test_an_answer_that_is_cut_is_asked_for_again(server: S3Server) -> None:
    cuts = iter([cut])
    server.answers[NAMES[0]] = lambda handler: (
        handler.command == "GET" and any(answer(handler) for answer in cuts)
    )
    found = Objects(server.address("st")).whole({NAMES[0]: ObjectInfo(25_600, 0)})
    assert found == {NAMES[0]: bytes(range(256)) * 100}
    assert len(server.ranges()) == 2


@pytest.mark.long  # the library tries again for half a minute
def test_answers_that_are_always_cut_fail_with_the_cause(server: S3Server) -> None:
    server.answers[NAMES[0]] = cut
    with pytest.raises(ObjectStoreError, match=r"^s3://bucket/st: .*GetObject"):
        Objects(server.address("st")).whole({NAMES[0]: ObjectInfo(25_600, 0)})


@pytest.mark.parametrize("rest", ["no_such_option=1", "region=%zz", "x=[1"])
def test_an_address_that_pyarrow_cannot_read_is_refused_without_its_secrets(rest: str) -> None:
    with pytest.raises(ObjectStoreError, match=r"^s3a://bucket/st: ") as error:
        Objects(f"s3a://AKIA123:verysecret@bucket/st?{rest}")
    assert "AKIA123" not in str(error.value)
    assert "verysecret" not in str(error.value)


def _wait_for(event: threading.Event) -> None:
    event.wait()


def test_jobs_run_at_the_same_time_and_the_first_error_ends_them() -> None:
    together = threading.Barrier(THREADS)

    def wait() -> None:
        together.wait(10)

    in_parallel([wait] * THREADS)
    begun: list[int] = []

    def fail() -> None:
        raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        in_parallel([fail, *[lambda: begun.append(1)] * 1000])
    never = threading.Event()
    with pytest.raises(NoAnswerError):
        in_parallel([partial(_wait_for, never)], 0.05)
    never.set()
    in_parallel([])
