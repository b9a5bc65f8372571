"""The rows of ``broker config``."""

from typing import Annotated, NamedTuple

from rmqctl.output.fields import OmitNull, Rank, Wide


class BrokerSettingRow(NamedTuple):
    """One setting of a store's broker."""

    setting: Annotated[str, "the setting, as broker.config and storage.config name it"]
    old: Annotated[str | None, OmitNull("value before the change"), Rank.KEY]
    value: Annotated[str | None, "the value, or the new one; null if it depends on the store"]
    origin: Annotated[str, "built-in, rmqctl/settings.json, or the store's files", Rank.MAIN]
    broker_conf: Annotated[
        str | None, "the line for a Java broker's broker.conf; null if there is none"
    ]
    fixed: Annotated[bool, Wide("whether it is fixed for the life of the store")]
    meaning: Annotated[str, Wide("what the setting means")]
    applied: Annotated[bool | None, OmitNull("whether the change was made; null in a plan")]
