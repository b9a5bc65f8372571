"""Settings of a store and its broker.

BrokerSettings   all of them: rows, lines of broker.conf
set_setting      change one; returns a Change
"""

from typing import TYPE_CHECKING

from rmqctl.admin.lazy_names import lazy_names

if TYPE_CHECKING:
    from .settings import BrokerSettings as BrokerSettings, set_setting as set_setting

__getattr__, __all__ = lazy_names(__name__, {"settings": ("BrokerSettings", "set_setting")})
