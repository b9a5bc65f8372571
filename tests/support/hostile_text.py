"""Texts that command a terminal, are markup, turn direction, or confuse widths."""

from hypothesis import strategies as st

SPECIAL = (
    "[/nope]",
    "[red]x[/red]",
    "[@click=app.quit]q[/]",
    "\x1b]0;owned\x07",
    "\x1b]52;c;b3duZWQ=\x07",
    "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\",
    "\x1b[2J\x1b[H",
    "\x1b[?1049l\x1bc",
    "\x1bP+q544e\x1b\\",
    "\x9b31m\x9d0;x\x9c",
    "\x07\x08\x7f\r\n\t\x0b\x0c\x00",
    "\u202eabc\u202c\u2066x\u2069\u200f",
    "\ud800\udcff\udfff",
    "a\u200bb\u2060c\ufeffd\u00ade",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\u2764\ufe0f\u20e3\U0001f1e9\U0001f1ea\U0001f44d\U0001f3fd",
    "\u6ce8\u6587\uff21\uff76\u3099\uac00\u1100\u1161\u11a8",
    "\u0e01\u0e47\u0e49\u0915\u094d\u0937\u093f",
    "e\u0301\u0302\u0303\u0304\u0305" * 3,
    "\u2028\u2029\x85\xa0\u3000\u3164\u115f\u2800",
    "\ue000\U000f0000\U0010ffff\ufffe",
    "{{7*7}} %s %n ${HOME} `id` $(id) 'x' \"y\" \\",
)


def hostile_text(most=6):
    """A text of such pieces, with letters between them."""
    piece = st.sampled_from(SPECIAL) | st.text(max_size=4) | st.sampled_from(["order", " ", "-7"])
    return st.lists(piece, max_size=most).map("".join)
