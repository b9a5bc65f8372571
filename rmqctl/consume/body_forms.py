"""The forms in which commands print bodies."""

from typing import Final

BODY_FORMS: Final = ("text", "json", "hex", "base64", "none")
