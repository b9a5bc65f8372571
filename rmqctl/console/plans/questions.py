"""Questions that come before a plan: each is a line that is typed."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from rmqctl.console.prompt import Prompt

from .wish import Wish


class Question(NamedTuple):
    """A line that is typed."""

    prompt: Prompt
    help: str


class Questions(ABC):
    """What has to be known before a plan can be made. ``at`` is the question that is typed into."""

    title: str
    subject: str
    """The name of what is changed."""

    def __init__(self, questions: Sequence[Question]) -> None:
        self.questions = questions
        self.at = 0

    @property
    def prompt(self) -> Prompt:
        """The line that is typed into."""
        return self.questions[self.at].prompt

    def key(self, name: str, character: str | None) -> None:
        """Type, or go to another question."""
        if name in ("up", "shift+tab"):
            self.at = max(0, self.at - 1)
        elif name in ("down", "tab"):
            self.at = min(len(self.questions) - 1, self.at + 1)
        else:
            self.prompt.key(name, character)

    def back(self) -> bool:
        """Go to the question before; False if there is none."""
        self.at -= 1
        if self.at >= 0:
            return True
        self.at = 0
        return False

    def answered(self) -> Wish | None:
        """Enter: the wish once all is answered, else None. ValueError says what is malformed."""
        self.check(self.at)
        if self.at < len(self.questions) - 1:
            self.at += 1
            return None
        for number in range(len(self.questions)):
            self.check(number)
        return self.wish()

    def understood(self) -> str:
        """How the present answer is read; may be empty."""
        return ""

    def command(self) -> str:
        """The command that does the same, as far as it is known."""
        return ""

    @abstractmethod
    def check(self, number: int) -> None:
        """ValueError if the answer to a question is malformed."""

    @abstractmethod
    def wish(self) -> Wish:
        """What the answers ask for."""
