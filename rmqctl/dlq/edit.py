"""``dlq redrive --edit``: a message as JSON in the user's editor.

    flag         the producer's number
    properties   the producer's properties as stored, including TAGS and KEYS
    body         the body as text; or body_json, if it is JSON that encodes to the same bytes;
                 or body_base64, if it is not text

A message that is not edited stays the same byte for byte.
"""

import base64
import json
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.retry.redrive import Content
from broker.retry.redrive_properties import own_properties
from broker.validation import BODY_LENGTH_ZERO
from rmqctl.child_processes import run_on_terminal
from rmqctl.errors import CliError, Refused, UsageProblem
from rmqctl.exit_codes import USAGE
from rmqctl.output.last_line import LAST_LINE
from rmqctl.output.values import escape_controls
from rmqctl.parse.json_texts import parse_given, parse_json
from rmqctl.parse.near_names import did_you_mean

from .rewrite_options import check_settable, check_text

if TYPE_CHECKING:
    from storage.format.message import MessageExt

_BODIES: Final = ("body", "body_json", "body_base64")
_ELSEWHERE: Final = {
    "value": "body",
    "payload": "body",
    "headers": "properties",
    **dict.fromkeys(("key", "keys"), "properties.KEYS"),
    **dict.fromkeys(("tag", "tags"), "properties.TAGS"),
}
"""Names of other tools and of ``--input``, and the field that they mean here."""
_CONTROLS: Final = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_FLAGS: Final = range(-(1 << 31), 1 << 31)


class JsonStyle(NamedTuple):
    """The JSON style of a body: its separators and escapes."""

    separators: tuple[str, str]
    ascii_only: bool

    def write(self, value: Any) -> bytes:
        """JSON in this style."""
        text = json.dumps(value, separators=self.separators, ensure_ascii=self.ascii_only)
        return text.encode("utf-8", "surrogatepass")


_STYLES: Final = tuple(
    JsonStyle(separators, ascii_only)
    for separators in ((",", ":"), (", ", ": "))
    for ascii_only in (False, True)
)


class EditedFile:
    """The file that the editor gets. It stays until its message is sent, if it was changed.

    Attributes:
        is_sent: whether the message was sent.
    """

    def __init__(self) -> None:
        self.is_sent = False
        self._path: Path | None = None
        self._before = ""
        self._is_named = False

    def write(self, name: str, text: str) -> Path:
        """Make the file."""
        self._before = text
        self._path = Path(tempfile.mkdtemp(prefix="rmqctl-")) / name
        self._path.write_text(text, "utf-8")
        return self._path

    def problem(self, error: Exception) -> CliError:
        """The error of a text that is no valid message; its sentence names the file."""
        self._is_named = True
        return CliError(f"--edit: {error}; the text is kept in {self._path}", USAGE)

    def leave(self) -> None:
        """At the end of the call: remove the file, or name it in a warning."""
        if self._path is None or self._is_named:
            return
        if self.is_sent or not self._was_changed(self._path):
            shutil.rmtree(self._path.parent, ignore_errors=True)
            return
        kept = f"the edited text is kept in {self._path}"
        LAST_LINE.print(kept, prefix="rmqctl: warning: ", level="warning")

    def _was_changed(self, path: Path) -> bool:
        try:
            return path.read_bytes().strip() not in (b"", self._before.encode().strip())
        except OSError:
            return False


def edited(
    message: "MessageExt",
    environ: Mapping[str, str],
    file: EditedFile,
    *,
    allow_empty: bool = False,
) -> Content:
    """The message as edited by the user; its body is empty with ``allow_empty`` only.

    Refused (7) if the text is unchanged or empty, or if the editor fails. CliError (2) if the text
    is not a valid message; the sentence names the file.
    """
    document, style = document_of(message)
    before = _as_text(document)
    path = file.write(f"dead-letter-{message.queue_offset}.json", before)
    _run_editor(path, environ)
    try:
        after = _read_back(path)
        if not after.strip():
            raise Refused("the edited text is empty; nothing was sent")
        if after == before:
            raise Refused("the text was not changed in the editor; nothing was sent")
        content = content_of(after, style)
        if not (content.body or allow_empty):
            raise UsageProblem(f"{BODY_LENGTH_ZERO}; --allow-empty sends it anyway")
    except (UsageProblem, UnicodeDecodeError) as error:
        raise file.problem(error) from None
    return content


def _read_back(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        raise Refused("the editor removed the file; nothing was sent") from None
    except OSError as error:
        raise Refused(
            f"the edited file cannot be read: {error.strerror}; nothing was sent"
        ) from None


def document_of(message: "MessageExt") -> tuple[dict[str, Any], JsonStyle | None]:
    """The message as JSON, and the style of a ``body_json``. Raises BodyError."""
    name, body, style = _body_of(message.body)
    properties = own_properties(message.properties)
    return {"flag": message.flag, "properties": properties, name: body}, style


def content_of(text: str, style: JsonStyle | None) -> Content:
    """The message that a text describes. UsageProblem says what is wrong."""
    try:
        document = parse_given(text)
    except ValueError as error:
        raise UsageProblem(f"the text is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise UsageProblem("the text is not a JSON object")
    known = ("flag", "properties", *_BODIES)
    unknown = document.keys() - set(known)
    if unknown:
        name = min(unknown)
        raise UsageProblem(
            f"{name!r} is not a field of a message{did_you_mean(name, known, _ELSEWHERE)}"
        )
    return Content(
        _body_from(document, style), _properties_from(document), _flag_from(document.get("flag", 0))
    )


def _body_of(body: bytes) -> tuple[str, Any, JsonStyle | None]:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return "body_base64", base64.b64encode(body).decode(), None
    if text[:1] in ("{", "["):
        try:
            value = parse_json(text)
        except ValueError:
            return "body", text, None
        for style in _STYLES:
            if style.write(value) == body:
                return "body_json", value, style
    return "body", text, None


def _body_from(document: Mapping[str, Any], style: JsonStyle | None) -> bytes:
    names = [name for name in _BODIES if name in document]
    if len(names) != 1:
        raise UsageProblem(f"one of {', '.join(_BODIES)} is needed")
    value = document[names[0]]
    if names[0] == "body_json":
        try:
            return (style or _STYLES[0]).write(value)
        except UnicodeEncodeError:
            raise UsageProblem("body_json: it has half of a surrogate pair") from None
    if not isinstance(value, str):
        raise UsageProblem(f"{names[0]} is not a text")
    try:
        if names[0] == "body":
            return value.encode("utf-8")
        return base64.b64decode(value, validate=True)
    except ValueError as error:
        raise UsageProblem(f"{names[0]}: {error}") from None


def _properties_from(document: Mapping[str, Any]) -> dict[str, str]:
    properties = document.get("properties", {})
    if not isinstance(properties, dict):
        raise UsageProblem("properties is not an object")
    for name, value in properties.items():
        if not isinstance(value, str):
            raise UsageProblem(f"property {escape_controls(name)!r} is not a text")
        if not name or {"\x01", "\x02"} & {*name, *value}:
            raise UsageProblem(
                f"property {escape_controls(name)!r} cannot be stored: its name is empty, or it "
                "contains U+0001 or U+0002"
            )
        check_text(name + value, "properties")
        check_settable(name, "properties")
    return properties


def _flag_from(flag: Any) -> int:
    if not isinstance(flag, int) or isinstance(flag, bool) or flag not in _FLAGS:
        raise UsageProblem("flag is not a 32-bit number")
    return flag


def _as_text(document: Mapping[str, Any]) -> str:
    """JSON without control characters, including those of C1, as an editor may hide them."""
    text = json.dumps(document, ensure_ascii=False, indent=2)
    return _CONTROLS.sub(lambda found: f"\\u{ord(found.group()):04x}", text) + "\n"


def _run_editor(path: Path, environ: Mapping[str, str]) -> None:
    command = environ.get("VISUAL") or environ.get("EDITOR") or ""
    if not command:
        if not sys.stdin.isatty():
            raise Refused("--edit needs an editor: set EDITOR")
        command = "vi"
    try:
        words = shlex.split(command)
        # The editor's screen is the terminal; standard output is for data.
        code = run_on_terminal([*words, str(path)], stdout=2)
    except (ValueError, OSError) as error:
        raise Refused(f"cannot run the editor {command!r}: {error}") from None
    if code:
        raise Refused(f"the editor ended with exit code {code}; nothing was sent")
