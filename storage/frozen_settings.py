"""A class of settings: a frozen dataclass of keywords, made without compiling methods for it.

A dataclass writes the text of its methods and has it compiled: for two classes of thirty settings
that takes a twentieth of a short command's time. Here all classes share methods that loop.

``checked_setting`` is the one way to check a value, also for the settings of clients: by the kind
of the default, and by a range. A switch is a bool, an enum is a member or its exact name, a number
is whole, a text is a str: code compares members by identity and asks switches for their truth, so a
value of another kind would have no effect, or the opposite one.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import FrozenInstanceError, dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self, dataclass_transform

if TYPE_CHECKING:
    from collections.abc import Mapping
    from dataclasses import Field
    from typing import ClassVar


_SHOWN: Final = 40


@dataclass_transform(kw_only_default=True, frozen_default=True)
class FrozenSettings:
    """Base of a class whose annotated members are settings with a default; immutable.

    ``dataclasses.fields`` and ``replace`` take it. TypeError for a name that is no setting; a value
    is of the kind of its default and within ``RANGES``, else ValueError names the setting. A
    subclass may check more in ``__post_init__``.
    """

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
        RANGES: ClassVar[Mapping[str, tuple[int, int]]]
        """The least and the largest value of each setting that is a number and may be recorded."""
    _MAY_BE_EMPTY = frozenset[str]()
    """Texts that may be empty."""

    def __init_subclass__(cls) -> None:
        dataclass(init=False, repr=False, eq=False, match_args=False)(cls)

    def __init__(self, **settings: Any) -> None:
        for name, value in settings.items():
            if name not in self.__dataclass_fields__:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument {name!r}"
                )
            # what is missing is a member of the class: the default
            self.__dict__[name] = self._checked(name, value)
        self.__post_init__()

    @classmethod
    def _checked(cls, name: str, value: Any) -> Any:
        """Give the value of a setting as the class has it; see ``checked_setting``."""
        return checked_setting(
            name,
            value,
            cls.__dataclass_fields__[name].default,
            cls.RANGES.get(name),
            may_be_empty=name in cls._MAY_BE_EMPTY,
        )

    def __post_init__(self) -> None:
        """Check the values; raises ValueError."""

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self._values().items())
        return f"{type(self).__qualname__}({values})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(tuple(self._values().values()))

    def with_(self, **changes: Any) -> Self:
        """Give a copy with some settings replaced."""
        return type(self)(**{**self.__dict__, **changes})

    def _values(self) -> Mapping[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


class SettingTypeError(TypeError, ValueError):
    """A setting whose value is of another type."""


def checked_setting(
    name: str,
    value: Any,
    default: Any,
    bounds: tuple[int, int] | None = None,
    *,
    may_be_empty: bool = False,
) -> Any:
    """Give the value of a setting as its class has it: the member of an enum that is named.

    A default of None is a switch that depends on the store. ``bounds`` are the least and the
    largest number. Raises ValueError that names the setting, SettingTypeError for a wrong type.
    """
    if default is None and value is None:
        return value
    if default is None or isinstance(default, bool):
        if not isinstance(value, bool):
            raise SettingTypeError(f"{name} is {_shown(value)}; it is True or False, a bool")
    elif isinstance(default, StrEnum):
        return _member(name, value, type(default))
    elif isinstance(default, int):
        return _whole(name, value, bounds)
    elif isinstance(default, float):
        return _fraction(name, value)
    elif isinstance(default, (tuple, frozenset)):
        return _numbers(name, value, type(default), bounds)
    else:
        _check_text(name, value, may_be_empty=may_be_empty)
    return value


def _member(name: str, value: Any, kind: type[StrEnum]) -> StrEnum:
    for member in kind:
        if isinstance(value, str) and value == member:
            return member
    error = ValueError if isinstance(value, str) else SettingTypeError
    raise error(f"{name} is {_shown(value)}; it is one of {', '.join(kind)}")


def _whole(name: str, value: Any, bounds: tuple[int, int] | None) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SettingTypeError(f"{name} is {_shown(value)}; it is a number")
    if value % 1:  # not 0 for NaN and infinite numbers too
        raise ValueError(f"{name} is {value}; it is a whole number")
    if bounds is not None and not bounds[0] <= value <= bounds[1]:
        raise ValueError(f"{name} is {_shown(value)}; it must be {bounds[0]} to {bounds[1]}")
    return value if isinstance(value, int) else int(value)


def _fraction(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SettingTypeError(f"{name} is {_shown(value)}; it is a number")
    if not 0 <= value <= 1:
        raise ValueError(f"{name} is {_shown(value)}; it must be 0 to 1")
    return value


def _numbers(
    name: str, value: Any, kind: type[Any], bounds: tuple[int, int] | None
) -> Collection[int]:
    if isinstance(value, str | bytes) or not isinstance(value, Collection):
        raise SettingTypeError(f"{name} is {_shown(value)}; it is a {kind.__name__} of numbers")
    found: Collection[int] = kind(_whole(f"a number of {name}", item, bounds) for item in value)
    return found


def _check_text(name: str, value: Any, *, may_be_empty: bool) -> None:
    if not isinstance(value, str):
        raise SettingTypeError(f"{name} is {_shown(value)}; it is a str")
    if not may_be_empty and not value.strip():
        raise ValueError(f"{name} is {_shown(value)}; it must not be empty")


def _shown(value: object) -> str:
    return repr(value)[:_SHOWN]
