"""What a filter of JSON bodies has seen, to say after a run why nothing can have matched.

The facts lie in shared memory: a search tests its messages in forked processes.
"""

from mmap import mmap
from typing import Any, Final, NamedTuple

from .near_names import did_you_mean

_MOST: Final = 1 << 16
_LOOKED_AT: Final = 20
"""Objects whose names are noted for a suggestion."""
_NAMES: Final = 50
"""Names of one object."""


class Fact:
    """Something that was seen, once it is marked."""

    __slots__ = ("_memory", "_place", "marked")

    def __init__(self, memory: mmap, place: int) -> None:
        self._memory = memory
        self._place = place
        self.marked = False
        """Whether this process has marked it."""

    def mark(self) -> None:
        """It was seen."""
        if not self.marked:
            self.marked = True
            self._memory[self._place] = 1

    def __bool__(self) -> bool:
        """Whether any process has marked it."""
        return bool(self._memory[self._place])


class Facts:
    """The facts of a filter."""

    def __init__(self) -> None:
        self._memory = mmap(-1, _MOST)
        self._count = 0
        self.fields: list[FieldFacts] = []
        self.read = self.fact()
        """A message was tested."""
        self.json = self.fact()
        """A message had a JSON body."""
        self.matched = self.fact()

    def fact(self) -> Fact:
        """A new fact, not marked."""
        self._count += 1
        return Fact(self._memory, min(self._count, _MOST) - 1)

    def mistakes(self) -> list[str]:
        """A sentence for each reason why nothing matched."""
        if self.matched or not self.read:
            return []
        if not self.json:
            return ["no message that was read has a JSON body"]
        return list(dict.fromkeys(text for field in self.fields for text in field.mistakes()))


class KindFacts(NamedTuple):
    """Whether values had a type that a comparison can hold for."""

    wanted: str
    fits: Fact
    differs: Fact


class FieldFacts:
    """The facts of one path in one condition."""

    def __init__(self, facts: Facts, text: str) -> None:
        self._text = text
        self._facts = facts
        self.found = facts.fact()
        """A message had a value at the path."""
        self.tried = facts.fact()
        """A message was looked at for it."""
        self.kinds: KindFacts | None = None
        """The facts about the type of values, in an ordering comparison."""
        self._names: dict[str, set[str]] = {}
        self._looked = 0
        facts.fields.append(self)

    def kind(self, number: bool, *, text: bool) -> KindFacts:
        """The facts about the type of values in an ordering comparison."""
        wanted = "a number or a text" if number and text else "a number" if number else "a text"
        self.kinds = KindFacts(wanted, self._facts.fact(), self._facts.fact())
        return self.kinds

    @property
    def is_noting(self) -> bool:
        """Whether the names of an object that lacks one are still noted."""
        return self._looked < _LOOKED_AT and not self.found.marked

    def note_names(self, found: dict[str, Any], missing: str) -> None:
        """Note the names of an object that lacks one."""
        if self._looked < _LOOKED_AT:
            self._looked += 1
            self.tried.mark()
            self._names.setdefault(missing, set()).update(list(found)[:_NAMES])

    def mistakes(self) -> list[str]:
        """Sentences about the path."""
        if self.tried and not self.found:
            meant = "".join(
                did_you_mean(name, sorted(others)) for name, others in self._names.items()
            )
            return [f"no message that was read has the field {self._text.strip()}{meant}"]
        if self.kinds is not None and self.kinds.differs and not self.kinds.fits:
            return [f"the field {self._text.strip()} is never {self.kinds.wanted}"]
        return []
