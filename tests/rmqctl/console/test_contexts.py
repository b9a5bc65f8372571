"""Contexts, and going to another store."""

import pytest

from storage.config import SMALL_STORE
from storage.store import MessageStore
from tests.support.cli import run
from tests.support.console import drive, json_rows


@pytest.fixture
def two(store, tmp_path):
    """The store with a topic, another one with another, and contexts of both."""
    other = tmp_path / "other"
    MessageStore.create(other, SMALL_STORE)
    run("produce", "orders", stdin=b"1\n2\n")
    run("produce", "mails", "-S", other, stdin=b"1\n")
    run("context", "add", "here", "-S", store)
    run("context", "add", "there", "-S", other)
    return store, other


@pytest.mark.slow
def test_contexts_are_those_of_the_command_and_lead_to_their_stores(two):
    store, other = two

    async def steps(console):
        await console.read()
        names = [row.context for row in console.app.pane.table.shown]
        command = console.app.pane.command()
        assert names == [row["context"] for row in json_rows(store, command)] == ["here", "there"]
        await console.press("j", "enter")
        await console.until("TOPICS 1")
        assert str(other) in console.lines()[0]
        assert "READ ONLY" in console.lines()[0]
        await console.type(":topics")
        await console.press("enter")
        await console.until("mails")
        assert "orders" not in console.text()
        await console.type(":ctx nowhere")
        await console.press("enter")
        assert "there is no context and no --store 'nowhere'" in console.text()
        await console.type(":ctx here")
        await console.press("enter")
        await console.until(f"store {store}, read only")
        await console.type(":topics")
        await console.press("enter")
        await console.until("orders")

    drive(store, steps, "contexts", size=(140, 40))


@pytest.mark.slow
def test_a_second_store_is_in_reach(two):
    store, other = two

    async def steps(console):
        console.app.cli.given["store"] = [str(other), str(store)]
        await console.read()
        await console.type(":ctx other")
        await console.press("enter")
        await console.until(f"store {other}, read only")
        await console.type(f":ctx {store.name}")
        await console.press("enter")
        await console.until(f"store {store}, read only")

    drive(store, steps, "groups", size=(140, 40))


@pytest.mark.slow
def test_the_first_stores_stay_in_reach_after_a_context(two):
    store, other = two

    async def steps(console):
        console.app.cli.given["store"] = [str(other), str(store)]
        await console.read()
        for name, path in (
            ("there", other),
            (store.name, store),
            ("here", store),
            ("other", other),
        ):
            await console.type(f":ctx {name}")
            await console.press("enter")
            await console.until(f"store {path}, read only")

    drive(store, steps, "groups", size=(140, 40))


@pytest.mark.slow
def test_a_store_that_no_option_names_stays_in_reach(two, monkeypatch):
    store, other = two
    monkeypatch.setenv("RMQCTL_STORE", str(store))

    async def steps(console):
        del console.app.first_cli.given["store"]
        await console.read()
        await console.type(":ctx there")
        await console.press("enter")
        await console.until(f"store {other}, read only")
        await console.type(":ctx nowhere")
        await console.press("enter")
        assert f"known: here, there, {store}" in console.words()
        await console.type(f":ctx {store.name}")
        await console.press("enter")
        await console.until(f"store {store}, read only")

    drive(store, steps, "groups", size=(140, 40))
