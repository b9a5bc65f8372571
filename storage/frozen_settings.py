"""A class of settings: a frozen dataclass of keywords, made without compiling methods for it.

A dataclass writes the text of its methods and has it compiled: for two classes of thirty settings
that takes a twentieth of a short command's time. Here all classes share methods that loop.
"""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, fields
from typing import TYPE_CHECKING, Any, NoReturn, Self, dataclass_transform

if TYPE_CHECKING:
    from collections.abc import Mapping
    from dataclasses import Field
    from typing import ClassVar


@dataclass_transform(kw_only_default=True, frozen_default=True)
class FrozenSettings:
    """Base of a class whose annotated members are settings with a default; immutable.

    ``dataclasses.fields`` and ``replace`` take it. TypeError for a name that is no setting; a
    subclass may check its values in ``__post_init__``.
    """

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
        RANGES: ClassVar[Mapping[str, tuple[int, int]]]
        """The least and the largest value of each setting that is a number and may be recorded."""

    def __init_subclass__(cls) -> None:
        dataclass(init=False, repr=False, eq=False, match_args=False)(cls)

    def __init__(self, **settings: Any) -> None:
        for name in settings:
            if name not in self.__dataclass_fields__:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument {name!r}"
                )
        self.__dict__.update(settings)  # what is missing is a member of the class: the default
        self.__post_init__()

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
