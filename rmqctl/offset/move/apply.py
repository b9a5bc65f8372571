"""From steps to done: the plan as rows, the question, the write, what was read back."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rmqctl.audit.journal_entry import change_note
from rmqctl.cli.change_steps import carry_out, will_execute
from rmqctl.cli.java_writers import refuse_beside_java
from rmqctl.errors import CliError, Refused
from storage.configs.progress import ProgressFile

from .plan import Step, targets_of
from .plan_summary import plan_summary
from .queues import committed, group_names
from .write import Check, members_of, progress_now, unchanged, write_moves

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.cli.context import Cli


class ChangeForm(NamedTuple):
    """How steps are shown: rows of a plan, and of a result by step, its row, the offset right
    before the write, and whether it was done (None: it was left alone)."""

    row_type: type
    planned: Callable[[Step], Any]
    result_type: type
    done: Callable[[Step, Any, int | None, bool | None], Any]


class ChangeRun:
    """Carries out one command's moves. Make it before anything is read for the plan."""

    def __init__(
        self, cli: "Cli", broker: "EmbeddedBroker", *, execute_by_default: bool = False
    ) -> None:
        self._cli = cli
        self._broker = broker
        self._by_default = execute_by_default
        self._root = broker.view.root
        self._java_check: Callable[[], None] = lambda: None
        if will_execute(cli, execute_by_default=execute_by_default):
            self._java_check = refuse_beside_java(self._root)
        self.progress = progress_now(self._root)
        """What the plan is to be made from."""
        doubt = broker.view.progress_doubt()
        if doubt is not None:
            cli.warn(doubt)

    @property
    def groups(self) -> set[str]:
        """All groups that have progress anywhere."""
        return group_names(self.progress)

    def carry_out(
        self,
        steps: Sequence[Step],
        form: ChangeForm,
        *,
        no_live: bool = False,
        full: bool | None = None,
        check: Check = lambda _: None,
        note: Mapping[str, Any] | None = None,
        refusal: CliError | None = None,
        save: Callable[[Sequence[Any]], str] | None = None,
    ) -> bool:
        """Show, ask, do, show; gives whether anything was done.

        ``no_live`` refuses (7) where consumers run. ``check`` may refuse under the lock, beside
        the check that nobody has moved anything meanwhile. ``full``: see foot.
        ``save`` gets the rows of the plan and gives a sentence about it. ``refusal`` is raised
        below the plan.
        """
        cli = self._cli
        groups = sorted({step.stand.place.group for step in steps})
        live = members_of(self._root, groups)
        plan = [form.planned(step) for step in steps]
        targets = targets_of(steps)
        sentences = [
            *plan_summary(self._broker.view, steps, cli.now_ms, full=full),
            *(
                f"group {group} runs ({', '.join(clients)}): it is told, and goes on from its new "
                "offsets within a second"
                for group, clients in live.items()
            ),
        ]
        if save is not None:
            sentences.append(save(plan))
        if live and no_live and refusal is None:
            refusal = Refused(f"group {min(live)} has running consumers, and --no-live was given")

        if not targets:
            return self._stay(steps, plan, form, sentences, refusal)

        def apply() -> list[Any]:
            still = unchanged(steps, live)

            def check_all(moves: Any) -> None:
                check(moves)
                still(moves)

            entry = {**change_note(cli), **(note or {})}
            moved = write_moves(self._root, targets, entry, check_all, self._java_check)
            cli.say(
                f"this is change {moved.change_id}; "
                f"'rmqctl offset undo {moved.change_id} --execute' takes it back"
            )
            found = ProgressFile(self._root).read()
            rows = []
            for step, row in zip(steps, plan, strict=True):
                if step.reset_target.stays:
                    rows.append(form.done(step, row, step.stand.offset, None))
                    continue
                key = step.stand.place.key
                old, new = moved.moves[key]
                applied = found.get(*key).generation >= new.generation
                rows.append(form.done(step, row, committed(old), applied))
            return rows

        return carry_out(
            cli,
            form.row_type,
            plan,
            apply,
            question=_question(targets),
            plan_summary=sentences,
            refusal=refusal,
            result_type=form.result_type,
            execute_by_default=self._by_default,
        )

    def _stay(
        self,
        steps: Sequence[Step],
        plan: Sequence[Any],
        form: ChangeForm,
        sentences: Sequence[str],
        refusal: CliError | None,
    ) -> bool:
        """Every queue is left alone: the rows say why, and there is nothing to ask."""
        cli = self._cli
        if will_execute(cli, execute_by_default=self._by_default):
            rows = [
                form.done(step, row, step.stand.offset, None)
                for step, row in zip(steps, plan, strict=True)
            ]
            cli.rows(form.result_type, rows)
        else:
            cli.rows(form.row_type, plan)
        for sentence in sentences:
            cli.say(sentence)
        if refusal is not None:
            raise refusal
        cli.say("there is nothing to change")
        return False


def _question(targets: Mapping[Any, int | None]) -> str:
    groups = {place.group for place in targets}
    topics = {place.topic for place in targets}
    what = f"{len(targets)} queue{'s' if len(targets) != 1 else ''}"
    of = f"of {_names(topics, 'topics')}"
    verb = "Move" if any(offset is not None for offset in targets.values()) else "Delete"
    return f"{verb} the progress of {_names(groups, 'groups')} in {what} {of}?"


def _names(names: set[str], plural: str) -> str:
    return min(names, default="") if len(names) == 1 else f"{len(names)} {plural}"
