"""Topics and groups as words and as options: ``lag show readers`` is ``lag show -g readers``.

A command declares an argument with one of the names below. The option is added when the command is
built, and its values become values of the argument, so the command function sees one of them only.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from typer.core import TyperArgument, TyperCommand, TyperOption


class Kind(NamedTuple):
    """What an argument names, and the names of its option."""

    noun: str
    long: str
    short: str


TOPIC: Final = Kind("topic", "--topic", "-t")
GROUP: Final = Kind("group", "--group", "-g")
KINDS: Final[Mapping[str, Kind]] = {
    "topic": TOPIC,
    "topics": TOPIC,
    "new_topics": TOPIC,
    "group": GROUP,
    "groups": GROUP,
    "new_groups": GROUP,
}
"""By the name of the argument."""


class NameOption(TyperOption):
    """An option that gives the value of an argument."""

    argument: TyperArgument
    kind: Kind


def name_options(params: Sequence[Any]) -> list[NameOption]:
    """The options for the arguments of a command that name a topic or a group."""
    return [
        _option(parameter, KINDS[str(parameter.name)], params)
        for parameter in params
        if isinstance(parameter, TyperArgument) and parameter.name in KINDS
    ]


def _option(argument: TyperArgument, kind: Kind, params: Sequence[Any]) -> NameOption:
    many = argument.nargs == -1
    rest = None if many else _rest(argument, params)
    text = f"A {kind.noun}, as an option; repeatable" if many else f"The {kind.noun}, as an option"
    if rest is not None:
        text += f"; all words are then {_bare_metavar(rest)}"
    option = NameOption(
        param_decls=[f"named_{argument.name}", kind.long, kind.short],
        metavar=kind.noun.upper(),
        help=text,
        multiple=True,
        type=str,
        default=None,
        expose_value=False,
    )
    option.argument = argument
    option.kind = kind
    return option


def _rest(argument: TyperArgument, params: Sequence[Any]) -> TyperArgument | None:
    """The argument of any number of words that stands beside this one."""
    return next(
        (
            other
            for other in params
            if isinstance(other, TyperArgument) and other is not argument and other.nargs == -1
        ),
        None,
    )


def _bare_metavar(argument: TyperArgument) -> str:
    """``FILE`` of ``[FILE...|-]``."""
    shown = str(argument.metavar or argument.name).strip("[]")
    return shown.partition("...")[0].partition("|")[0]


def accept_both(parser: Any, ctx: Any, params: Sequence[Any]) -> Any:
    """Make a command's parser give the values of name options to their arguments."""
    names = [parameter for parameter in params if isinstance(parameter, NameOption)]
    if not names:
        return parser
    arguments = [parameter for parameter in params if isinstance(parameter, TyperArgument)]
    options = [parameter for parameter in params if parameter not in arguments]

    def parse_args(args: list[str]) -> Any:
        opts, words, order = _parser(options, ctx).parse_args(args)
        filled: dict[str, Any] = {}
        left = list(arguments)
        for option in names:
            argument = option.argument
            values = tuple(dict.fromkeys(opts.get(str(option.name)) or ()))
            if argument.nargs == -1 or not values:
                continue
            if len(values) > 1:
                ctx.fail(_two(option, *values[:2]))
            if not _is_a_word_too(ctx, option, values[0], words, left):
                filled[str(argument.name)] = values[0]
                left.remove(argument)
        found, rest, more = _parser(left, ctx).parse_args(["--", *words])
        found.update(filled)
        for option in names:
            if option.argument.nargs == -1:
                name = str(option.argument.name)
                both = (*_several(found.get(name)), *_several(opts.get(str(option.name))))
                found[name] = tuple(dict.fromkeys(both))
        return {**opts, **found}, rest, [*order, *more]

    parser.parse_args = parse_args
    return parser


def _several(values: Any) -> Sequence[str]:
    return values if isinstance(values, tuple | list) else ()


def _is_a_word_too(
    ctx: Any, option: NameOption, value: str, words: Sequence[str], arguments: Sequence[Any]
) -> bool:
    """Whether the line has the name as a word, too. It then must be the same one."""
    argument = option.argument
    rest = _rest(argument, arguments)
    if rest is not None:
        if words and words[0] == value:
            ctx.fail(
                f"{option.kind.noun} {value} is given twice: with {option.kind.long} all words are "
                f"{_bare_metavar(rest)}"
            )
        return False
    if len(words) < len(arguments):
        return False
    word = words[arguments.index(argument)]
    if word != value:
        ctx.fail(_two(option, word, value))
    return True


def _two(option: NameOption, one: str, other: str) -> str:
    return f"{one} and {option.kind.long} {other} name two {option.kind.noun}s; give one"


def _parser(params: Sequence[Any], ctx: Any) -> Any:
    return TyperCommand(None, params=list(params), add_help_option=False).make_parser(ctx)
