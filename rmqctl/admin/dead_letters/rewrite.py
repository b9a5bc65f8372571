"""Changes of a redriven message against its dead letter."""

import base64
import os
import shlex
import subprocess
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.retry.redrive import UNCHANGED, Content
from broker.retry.redrive_properties import own_properties
from broker.validation import BODY_LENGTH_ZERO
from rmqctl.output.message_variables import message_variables
from storage.format.errors import BodyError

if TYPE_CHECKING:
    from storage.format.message import MessageExt

_LONGEST_NOTE: Final = 40


class PipeFailedError(Exception):
    """The program of --pipe gave no body; the message is skipped."""


class Rewrite(NamedTuple):
    """What a message is sent with instead. All of it may be absent."""

    properties: Mapping[str, str] = {}
    """Properties to set; an empty value removes the property."""
    body: bytes | None = None
    pipe: str | None = None
    """A command that gets the old body as input; its output is the new body. No shell."""
    edited: Content | None = None
    """The message as edited by the user."""
    allow_empty: bool = False
    """Whether an empty body is sent, such as an output of ``pipe``; other new bodies are checked as
    they come."""

    @property
    def replaces_body(self) -> bool:
        """Whether the sent message has a new body, which is checked where it is created."""
        return self.edited is not None or self.body is not None or self.pipe is not None

    def content(self, message: "MessageExt") -> Content:
        """The message to send for a dead letter. Runs the command; PipeFailedError if it fails."""
        if self.edited is not None:
            return self.edited
        body = self.body
        if self.pipe is not None:
            body = piped(self.pipe, message)
            if not (body or self.allow_empty):
                raise PipeFailedError(
                    f"--pipe: no output: {BODY_LENGTH_ZERO}; --allow-empty sends it anyway"
                )
        if body is None and not self.properties:
            return UNCHANGED
        return Content(body, self.properties_of(message))

    def properties_of(self, message: "MessageExt") -> Mapping[str, str]:
        """The producer's properties to send for a dead letter."""
        if self.edited is not None and self.edited.properties is not None:
            return self.edited.properties
        properties = own_properties(message.properties)
        for name, value in self.properties.items():
            if value:
                properties[name] = value
            else:
                properties.pop(name, None)
        return properties

    def body_size(self, message: "MessageExt") -> int | None:
        """Size of the body to send; None if a program creates it."""
        if self.pipe is not None:
            return None
        body = self.edited.body if self.edited is not None else self.body
        if body is not None:
            return len(body)
        try:
            return len(message.body)
        except BodyError:  # sent as it is stored
            return len(message.raw_body)

    def notes(self) -> list[str]:
        """The changes, in words."""
        notes = [
            f"{name} is {_short(value)}" if value else f"without {name}"
            for name, value in self.properties.items()
        ]
        if self.body is not None:
            notes.append("new body")
        if self.pipe is not None:
            notes.append(f"body through {_short(self.pipe)}")
        if self.edited is not None:
            notes.append("edited")
        return notes

    def entry(self) -> dict[str, Any]:
        """The changes as JSON, for the file of the run."""
        edited = None
        if self.edited is not None:
            edited = {**self.edited._asdict(), "body": _encoded(self.edited.body)}
        return {
            "properties": dict(self.properties),
            "body": _encoded(self.body),
            "pipe": self.pipe,
            "edited": edited,
            "allow_empty": self.allow_empty,
        }


def rewriting_from(entry: Mapping[str, Any]) -> Rewrite:
    """What ``Rewrite.entry`` wrote."""
    edited = entry["edited"]
    if edited is not None:
        edited = Content(_decoded(edited["body"]), edited["properties"], edited["flag"])
    body, allow_empty = _decoded(entry["body"]), entry.get("allow_empty", False)  # not in 0.1.0
    return Rewrite(entry["properties"], body, entry["pipe"], edited, allow_empty)


def piped(command: str, message: "MessageExt") -> bytes:
    """The output of a program for a body. No shell: no content becomes part of a command."""
    try:
        body = message.body
    except BodyError as error:
        raise PipeFailedError(f"--pipe: {error}") from None
    done = subprocess.run(
        shlex.split(command),
        input=body,
        capture_output=True,
        env={**os.environ, **message_variables(message)},
        check=False,
        start_new_session=True,  # Ctrl-C ends rmqctl, not the program that is running
    )
    if done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise PipeFailedError(f"--pipe: exit code {done.returncode}" + (words and f": {words}"))
    return done.stdout


def _encoded(body: bytes | None) -> str | None:
    return None if body is None else base64.b64encode(body).decode()


def _decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_NOTE else text[: _LONGEST_NOTE - 3] + "..."
