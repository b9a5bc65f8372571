"""How the screen of a change is drawn."""

from typing import Final

from rmqctl.console.cells import safe
from rmqctl.console.drawing import Line, Role, Span, cut_line, spread, text_line
from rmqctl.console.frame import notice_lines
from rmqctl.console.keys import keys_of
from rmqctl.console.panes import progress_text
from rmqctl.console.prompt import Prompt
from rmqctl.console.shapes import RULE
from rmqctl.output.cells import cells_of, wrapped
from storage.parse.times import near_datetime

from .sheet import SCREEN, Sheet, Stage
from .timeline_lines import HEIGHT, timeline_lines

_LEAST_ROWS: Final = 5
"""Lines that are kept for the rows, with their headings."""
_LEAST_FIELD: Final = 20
"""Cells for what is typed; a label that leaves fewer stands above it."""


def sheet_screen(
    sheet: Sheet, top: Line, width: int, height: int, notice: str, shown: str
) -> list[Line]:
    """All lines of the screen of a change; ``top`` is the first one, ``shown`` its command."""
    rule: Line = [Span(RULE * width, Role.DIM)]
    head = [top, head_line(sheet, width), rule]
    command = text_line(f" = {shown}", Role.TEXT)
    keys = notice_lines(notice, width) if notice else [cut_line(key_line(sheet), width)]
    foot = [rule, cut_line(command, width), *keys]
    return [*head, *body_lines(sheet, width, height - len(head) - len(foot)), *foot]


def head_line(sheet: Sheet, width: int) -> Line:
    """Where one is: the place, the change, and how far it is."""
    names = f"{sheet.subject} > {sheet.title}"
    stages = [Stage.PLAN, Stage.REASON, Stage.NAME, Stage.DONE]
    if sheet.questions is not None:
        stages.insert(0, Stage.QUESTIONS)
    now = {Stage.READING: Stage.PLAN, Stage.APPLYING: Stage.DONE}.get(sheet.stage, sheet.stage)
    words = [f"[{s.value}]" if s is now else s.value for s in stages]
    return spread(text_line(f" {names}", Role.TITLE), text_line(f"{'  '.join(words)} "), width)


def body_lines(sheet: Sheet, width: int, room: int) -> list[Line]:
    """The lines between head and foot, exactly so many."""
    if sheet.helping:
        lines = _help()
    elif sheet.stage is Stage.QUESTIONS:
        lines = _questions(sheet, width)
    else:
        below = _below(sheet, width)
        most = max(0, room - _LEAST_ROWS)
        if len(below) > most:
            left = len(below) - most + 1
            kept = below[-(most - 1) :] if most > 1 else []
            below = [text_line(f" ({left} lines above are not shown)", Role.WARN), *kept]
        above = _picture(sheet, room - len(below))
        rows = _rows(sheet, width, room - len(above) - len(below))
        lines = [*above, *rows, *below]
    lines += [text_line("")] * (room - len(lines))
    return [cut_line(line, width) for line in lines[:room]]


def key_line(sheet: Sheet) -> Line:
    """What the keys do now."""
    if sheet.problem:
        return text_line(f" {sheet.problem}", Role.WARN)
    match sheet.stage:
        case Stage.QUESTIONS | Stage.REASON:
            keys = [("enter", "next"), ("esc", "back (nothing is changed)")]
        case Stage.NAME:
            keys = [("enter", "do it, once the name is typed"), ("esc", "back")]
        case Stage.READING:
            keys = [("esc", "back (nothing is changed)")]
        case Stage.APPLYING:
            keys = [("x", "stop before the next row")]
        case Stage.DONE:
            undo = [("u", "undo...")] if sheet.undo_wish() is not None else []
            keys = [*undo, ("esc", "close"), ("w", "wide"), ("Y", "copy command")]
        case _:
            can = sheet.plan is not None and sheet.plan.can_be_done
            keys = [("enter", "next")] if can else []
            keys += [("esc", "back (nothing is changed)")]
            if "rule" in sheet.others():
                keys += [("b", "rule"), ("?", "keys"), ("left right", "a minute")]
            else:
                keys += [("?", "keys")]
            keys += [("w", "wide"), ("Y", "copy"), ("^r", "anew")]
    line: Line = [Span(" ")]
    for label, text in keys:
        line += [Span(label, Role.KEY), Span(f" {text}  ")]
    return line


def _help() -> list[Line]:
    lines = [text_line(" Keys of a plan (any key closes)", Role.HEAD)]
    lines += [
        [Span(f"  {key.label:<8}", Role.KEY), Span(key.help)]
        for key in keys_of(SCREEN)
        if SCREEN in key.screens or key.action in _WORKING
    ]
    return lines


_WORKING: Final = frozenset(
    {
        *("down", "up", "first", "last", "page_down", "page_up", "open", "back"),
        *("wide", "look_now", "copy_command", "stop", "help", "quit"),
    }
)
"""Actions of every screen that a plan has, too."""


def _questions(sheet: Sheet, width: int) -> list[Line]:
    found = sheet.questions
    assert found is not None
    lines: list[Line] = [text_line("")]
    for number, question in enumerate(found.questions):
        here = number == found.at
        lines += _field(question.prompt, width, typed=here)
        if here:
            lines += _sentences((question.help,), width - 2, Role.DIM)
            if found.understood():
                lines += _sentences((found.understood(),), width - 2, Role.HEAD)
        lines.append(text_line(""))
    problems = [f"! {problem}" for problem in (sheet.banner, sheet.problem) if problem]
    return lines + _sentences(problems, width - 2, Role.BAD)


def _rows(sheet: Sheet, width: int, height: int) -> list[Line]:
    plan, pane = sheet.plan, sheet.pane
    if sheet.stage is Stage.READING or plan is None:
        far = "" if sheet.progress is None else f"   {progress_text(sheet.progress)} read"
        lines = [text_line(f" making the plan ...{far}", Role.DIM)]
    elif plan.error is not None:
        lines = _sentences((f"! {plan.error}",), width - 2, Role.BAD)
    elif sheet.stage is Stage.APPLYING and not sheet.count:
        lines = [text_line(" it is being done ...", Role.WARN)]
    else:
        assert pane is not None
        return pane.lines(width, height, active=True, titled=False)
    lines += [text_line("")] * (height - len(lines))
    return lines[:height]


def _picture(sheet: Sheet, room: int) -> list[Line]:
    """The timeline, where the rows leave room for it."""
    plan = sheet.plan
    if plan is None or plan.picture is None or room < HEIGHT + _LEAST_ROWS:
        return []
    if sheet.stage not in (Stage.PLAN, Stage.REASON, Stage.NAME):
        return []
    return timeline_lines(plan.picture, sheet.zone)


def _below(sheet: Sheet, width: int) -> list[Line]:
    wide = width - 2
    if sheet.stage in (Stage.DONE, Stage.APPLYING):
        return _outcome(sheet, wide)
    lines = _sentences((f"! {sheet.banner}",), wide, Role.BAD) if sheet.banner else []
    if sheet.banner and sheet.stage is not Stage.READING:
        lines += _sentences(("The plan was made anew; read it again.",), wide, Role.WARN)
    plan = sheet.plan
    if sheet.stage is Stage.READING or plan is None or plan.change is None:
        return lines
    rows = len(plan.change.plan)
    lines += _sentences(plan.sentences, wide, Role.TEXT)
    if not plan.change.plan or not plan.change.has_effect:
        return [*lines, text_line(" There is nothing to change.", Role.WARN)]
    if plan.refusals:
        lines += _sentences([f"REFUSED: {refusal}" for refusal in plan.refusals], wide, Role.BAD)
        return lines
    made = f"{near_datetime(plan.made_ms, sheet.zone):%H:%M:%S}"
    lines += _sentences(
        (
            f"{rows:,} row{'' if rows == 1 else 's'}, read at {made}; if anything has moved since, "
            "nothing is changed.",
            plan.change.question,
        ),
        wide,
        Role.DIM,
    )
    name = sheet.name_to_type()
    lines += _field(sheet.reason, width, typed=sheet.stage is Stage.REASON, label="reason: ")
    label = f"Type {name} (the name of {plan.wish.name_of}) to do it: "
    return lines + _field(
        *(sheet.name, width),
        typed=sheet.stage is Stage.NAME,
        label=label,
        least=cells_of(safe(name)) + 1,
    )


def _outcome(sheet: Sheet, wide: int) -> list[Line]:
    done, plan = sheet.done, sheet.plan
    if sheet.stage is Stage.APPLYING:
        return [text_line(f" {sheet.count:,} rows so far", Role.DIM)] if sheet.count else []
    lines: list[Line] = []
    whole = not done.stopped and done.error is None
    if not whole and plan is not None and plan.change is not None:
        tried = f"{sheet.count:,} of {len(plan.change.plan):,}"
        text = f"failed after {tried}" if done.error is not None else f"stopped: {tried} were tried"
        more = () if plan.wish.stopped is None else plan.wish.stopped(plan.change)
        lines += _sentences([text, *more], wide, Role.WARN if done.error is None else Role.BAD)
    if done.error is not None:
        lines += _sentences((f"! {done.error}",), wide, Role.BAD)
    if sheet.refused:
        text = f"{sheet.refused:,} of {sheet.count:,} not done; the rows show which"
        lines += _sentences((text,), wide, Role.BAD)
    number = "" if done.change_id is None else f": this is change {done.change_id}"
    undo = sheet.undo_wish()
    back = "" if undo is None else f"; u shows the plan of '{undo.command_line(undo.words)}'"
    if plan is not None and plan.wish.after is not None and plan.change is not None:
        lines += _sentences(list(plan.wish.after(plan.change)), wide, Role.WARN)
    warned = [] if plan is None else list(plan.warned)
    lines += _sentences(warned, wide, Role.WARN)
    rows = f"{sheet.count:,} row{'' if sheet.count == 1 else 's'}"
    if whole:
        role = Role.WARN if warned else Role.GOOD
        return [*lines, *_sentences((f"Done ({rows}){number}{back}.",), wide, role)]
    text = f"{sheet.count - sheet.refused:,} done{number}{back}."
    return [*lines, *_sentences((text,), wide, Role.WARN)]


def _field(
    prompt: Prompt,
    width: int,
    *,
    typed: bool,
    label: str | None = None,
    least: int = _LEAST_FIELD,
) -> list[Line]:
    """A line to type into, with the cursor if it is typed into now: the label then stands on lines
    of its own where it leaves less than ``least`` cells."""
    text = prompt.label if label is None else label
    if not typed:
        return [[*text_line(f" {text}", Role.DIM), *text_line(prompt.text)]]
    if cells_of(safe(f" {text}")) + least > width:
        lines = _sentences((text.rstrip(),), width - 2, Role.KEY)
        return [*lines, [Span("  "), *prompt.line(width - 2, "")[1:]]]
    return [prompt.line(width, text)]


def _sentences(sentences: "tuple[str, ...] | list[str]", width: int, role: Role) -> list[Line]:
    return [
        text_line(f" {line}", role)
        for sentence in sentences
        for line in wrapped(safe(sentence), max(1, width))
    ]
