"""A Textual application that shows one line."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.widget import Widget


class Line(Widget):
    """The line."""

    def render(self) -> str:
        """Its text."""
        return "READ ONLY"


class Bare(App[None]):
    """The application."""

    def compose(self) -> ComposeResult:
        """The one widget."""
        yield Line()


Bare().run()
