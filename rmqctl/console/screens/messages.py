"""The screens of messages."""

from typing import Final

from rmqctl.console.details import DetailPane
from rmqctl.console.looks import messages, walks
from rmqctl.console.looks.look import Place
from rmqctl.console.message_panes import FollowPane, MessageListPane, SearchPane
from rmqctl.console.specs import PaneSpec, ScreenSpec


def _title(place: Place) -> str:
    window = messages.window_of(place)
    queue = "" if window.queue == messages.ALL else f"   queue {window.queue}"
    start = f"from {window.start}" if window.start else f"the last {window.most}"
    return f"Topics > {window.topic} > messages{queue}   {start}"


_BELOW: Final = PaneSpec(
    messages.ONE, "MESSAGE", beside=True, of_row=messages.place_of, pane=DetailPane
)

SCREENS: Final = {
    "messages": ScreenSpec(
        _title,
        [PaneSpec(messages.LIST, "MESSAGES", pane=MessageListPane), _BELOW],
        ("form", "follow", "life"),
    ),
    "follow": ScreenSpec(
        lambda place: f"Topics > {place.name} > follow   {' '.join(walks.filter_words(place))}",
        [PaneSpec(walks.FOLLOW, "NEW", pane=FollowPane), _BELOW],
        ("follow", "stop", "form"),
    ),
    "search": ScreenSpec(
        lambda place: f"Search > {place.name}",
        [PaneSpec(walks.SEARCH, "HITS", pane=SearchPane), _BELOW],
        ("next_hit", "stop", "form", "life"),
    ),
    "message": ScreenSpec(
        lambda place: "Topics > {} > queue {} > {}".format(*place.names),
        [PaneSpec(messages.ONE, "MESSAGE", pane=DetailPane)],
        ("form", "life", "trace"),
    ),
    "life": ScreenSpec(
        lambda place: f"Life of {place.name}", [PaneSpec(messages.LIFE, "EVENTS"), _BELOW]
    ),
    "trace": ScreenSpec(lambda place: f"Trace of {place.name}", [PaneSpec(messages.TRACE)]),
}
