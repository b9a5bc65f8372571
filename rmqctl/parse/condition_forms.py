"""The forms of ``--where`` and ``--json-path``: the tables that ``explain`` and the manual show."""

from typing import Final

Forms = tuple[tuple[str, str], ...]

_JOINED: Final = "and before or; also && || !; parentheses group"

WHERE_TITLE: Final = "A condition on printed rows. -o help lists the fields of a command."
WHERE_FORMS: Final[Forms] = (
    ("lag > 1000", "compare a field: = != < <= > >= (== and <> too); hyphens are underscores"),
    ("lag > 9 and not group = a", _JOINED),
    ("group ~ '^orders'", "contains a match of a regular expression (also: matches); !~ has none"),
    ("group in (a, b)", "one of several values; not in: none of them"),
    ("age_ms > 2h", "a duration, also in milliseconds; lag_bytes > 10M a size"),
    ("store_timestamp > -1h", "a time (rmqctl explain time); quote a time that has blanks"),
    ("java_locked", "a field that is true"),
    ("keys = order-7", "an array contains the value"),
    ("properties.color = red", "a member of an object"),
    ("commitlog.files > 9", "members by their types: numbers by value (times: ms), texts as texts"),
    ("committed_offset = null", "unknown; every other comparison with an unknown value is false"),
)
WHERE_RULES: Final = (
    "Values need quotes if they have blanks, brackets or quotes; '...' and \"...\" are the same.",
    "Regular expressions have RE2's syntax. Conditions are nested up to 100 levels deep.",
)

JSON_TITLE: Final = "A condition on JSON bodies. The option given several times: all hold."
JSON_FORMS: Final[Forms] = (
    ("order.id", "the field exists and is not null; also $.order.id, @.order.id"),
    ("country = DE", "compare a field with a value or another path: = == != < <= > >= <>"),
    ("sum > 100", "numbers by value; texts are ordered only if the value is quoted"),
    ("sum > 9 and not country = DE", _JOINED),
    ("sku in (x7, 'x 8')", 'one of several values; not in: none of them; also in ["x7"]'),
    ("name ~ '^A.*z$'", "contains a match of a regular expression (also: matches); !~ has none"),
    ("closed = null", "is null, not missing; not closed: is null or missing"),
    ("items[0].sku = x7", "an index from 0; [-1] is the last; [0:2] the first two"),
    ("items[*].price > 9", "any item of an array; .* any member of an object"),
    ("items[?@.sku == 'x7' && @.price > 9]", "any item for which all of it holds"),
    ("..email = a@b.example", "a field of that name at any depth; once in a path"),
    ('["first name"] = Ada', 'a name with blanks or signs; also "first name" = Ada'),
    ("length(items) > 2", "items of an array, members of an object, or characters of a text"),
    ("count(items[*].sku) > 2", "the number of values at a path"),
    ("match(@.sku, 'x[0-9]')", "the whole text matches; search(): a part of it"),
)
JSON_RULES: Final = (
    'The forms of filters in RFC 9535 are read: @.a == "x" && @.b > 3. Different from there: a '
    "number equals its text, a comparison with a missing field is false (write not a = x), and a "
    "path alone does not hold for null.",
    "Values need quotes if they have blanks, brackets or quotes. A quoted value has the escapes of "
    "JSON; a quoted regular expression after ~ has none but that of the quote. Regular expressions "
    "have RE2's syntax.",
    "If no message matches, a field that no message has is named on stderr.",
)
