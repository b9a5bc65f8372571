"""Settings of a Java broker, as far as its store shows them: its own settings lie elsewhere.

A broker makes topics named after its cluster and itself, and puts them into topics.json with the
first topic that is created or changed (TopicConfigManager of 4.9).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from storage.configs.store_settings import read_store_settings, settings_error
from storage.configs.topics import (
    REPLY_TOPIC_SUFFIX,
    TopicConfig,
    system_topics,
    topics_file,
)
from storage.errors import CorruptFileError, go_on_without
from storage.format.message import AUTO_CREATE_TOPIC_KEY_TOPIC, SELF_TEST_TOPIC
from storage.layout import was_created_here

from .config import BrokerConfig

_NO_NAME: Final = "\0"


def config_of(root: Path, *, reading: bool = False) -> BrokerConfig:
    """The settings for the broker of a store: recorded changes, then what the store shows, then
    defaults.

    With ``reading`` damaged settings are left out. Raises CorruptFileError and StoreVersionError.
    """
    shown = told_by_store(root)
    try:
        return BrokerConfig.from_record({**shown, **_changed(root)})
    except CorruptFileError as error:
        if not reading:
            raise
        go_on_without(error, "the settings of the broker are taken to be the defaults")
    return BrokerConfig.from_record(shown)


def _changed(root: Path) -> dict[str, Any]:
    settings = read_store_settings(root).broker
    try:
        BrokerConfig.from_record(settings)
    except ValueError as error:
        raise settings_error(root, error) from error
    return settings


def told_by_store(root: Path) -> dict[str, Any]:
    """Settings of BrokerConfig that differ from the defaults; none of a store that rmqctl made."""
    if was_created_here(root):
        return {}
    try:
        topics = dict(topics_file(root).read(0).items)
    except (OSError, CorruptFileError):  # code that needs the topics reports it
        return {}
    if SELF_TEST_TOPIC not in topics:  # no broker has made its own topics
        return {}
    default = BrokerConfig()
    shown: dict[str, Any] = {}
    if AUTO_CREATE_TOPIC_KEY_TOPIC not in topics:
        shown["auto_create_topic_enable"] = False
    cluster = _cluster(topics)
    if default.broker_cluster_name not in topics and cluster is not None:
        shown["broker_cluster_name"] = cluster
    name = _broker_name(topics, cluster)
    if default.broker_name not in topics and name is not None:
        shown["broker_name"] = name
    return shown


def _cluster(topics: dict[str, TopicConfig]) -> str | None:
    """The cluster whose reply topic exists, too."""
    names = [name for name in topics if name + REPLY_TOPIC_SUFFIX in topics]
    return names[0] if len(names) == 1 else None


def _broker_name(topics: dict[str, TopicConfig], cluster: str | None) -> str | None:
    """The only topic made as a broker makes its own, and none of the others that it makes."""
    others = {*system_topics(_NO_NAME, _NO_NAME), cluster}
    names = [
        name
        for name, found in topics.items()
        if name not in others and found == system_topics(_NO_NAME, name)[name]
    ]
    return names[0] if len(names) == 1 else None
