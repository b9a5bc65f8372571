import pytest

from rmqctl import exit_codes
from rmqctl.cli.tree import TREE, CommandRef
from rmqctl.help.terms import all_terms, find, normal
from storage.parse.time_forms import TIME_FORMS
from storage.tools.fsck.findings import Code
from tests.support.cli import run

COMMANDS = {
    name if isinstance(entry, CommandRef) else f"{name} {verb}"
    for name, entry in TREE.items()
    for verb in ([""] if isinstance(entry, CommandRef) else entry.verbs)
}


@pytest.mark.slow
@pytest.mark.feature(146)
@pytest.mark.parametrize("code", Code)
def test_every_finding_says_its_severity_and_what_it_means(code):
    [found] = [term for term in find(code) if term.kind.startswith("finding")]
    assert found.text.partition(" ")[0].rstrip(".,") in {"Error", "Warning", "Info"}
    assert len(found.text) > 40
    result = run("explain", code)
    assert result.code == 0
    assert result.lines[0] == f"{code} (finding of store fsck)"


@pytest.mark.slow
@pytest.mark.feature(146)
def test_every_exit_code_is_found_by_number_and_by_name():
    for name, number in vars(exit_codes).items():
        if name.isupper():
            for question in (
                *(str(number), f"exit code {number}", f"exit {number}", f"rc{number}", name),
                f"exit-code {number}",
            ):
                assert "exit code" in {term.kind for term in find(question)}, question


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("STALL", "health of a group"),
        ("behind", "state of a group in a queue"),
        ("SEND_OK", "outcome of sending a message"),
        ("pull_offset_moved", "answer of a broker"),
        ("Half Message", "word"),
        ("dlq", "word"),
        ("%RETRY%", "word"),
        ("fileReservedTime", "setting of a store"),
        ("retryMaxTimes", "field"),
        ("committed_offset", "field"),
        ("topic queues", "command"),
        ("RECONSUME_LATER", "result of a listener"),
        ("UNIQ_KEY", "property of a message"),
        ("RMQCTL_FAILURE_CLASS", "property of a message"),
        ("RMQCTL_REDRIVES", "property of a message"),
        ("RMQCTL_STORE", "setting of rmqctl"),
        ("consumerOffset.json", "word"),
        ("TOPIC_GONE", "finding of offset orphans"),
        ("critical", "word of lag check"),
    ],
)
def test_words_codes_states_settings_and_fields_are_known(question, kind):
    assert kind in {term.kind for term in find(question)}


def test_several_words_are_one_question_and_a_term_may_have_several_meanings():
    text = run("explain", "committed", "offset").out
    assert text.startswith("committed offset (word)\n    The progress of a group in a queue")
    assert "\n\ncommitted_offset (field)\n" in text


def test_the_forms_of_a_time_are_a_table():
    text = run("explain", "time", env={"COLUMNS": "80"}).out
    assert text.startswith("time (form)\n    now   ")
    for form in TIME_FORMS:
        assert f"\n    {form.example} " in text
    assert max(map(len, text.splitlines())) <= 80
    [row] = run("explain", "time", "-o", "json").json()
    assert "yesterday 15:00: that time of that day" in row["meaning"]


@pytest.mark.parametrize("term", ["json-path", "time", "where"])
@pytest.mark.parametrize("columns", [1, 30, 36, 42, 43, 61, 62])
def test_forms_fit_a_narrow_terminal(term, columns):
    wide = run("explain", term, env={"COLUMNS": "100"})
    narrow = run("explain", term, env={"COLUMNS": str(columns)})
    assert narrow.code == 0, narrow.err
    assert "".join(narrow.out.split()) == "".join(wide.out.split())
    if columns >= 30:  # room for most words
        cells = [len(line) for line in narrow.lines if line.startswith(" " * 8)]
        assert max(cells) <= max(columns, 36)
        assert len(narrow.lines) < 4 * len(wide.lines)


def test_rows_come_with_a_format():
    rows = run("explain", "4", "-o", "json").json()
    assert [(row["term"], row["also"]) for row in rows] == [("4", ["DAMAGED", "exit code 4"])]
    everything = run("explain", "-o", "jsonl")
    assert len(everything.lines) > 500


def test_an_unknown_term_names_the_nearest():
    result = run("explain", "unit_mising")
    assert result.code == 3
    assert "unknown term 'unit_mising'; did you mean 'UNIT_MISSING'" in result.err
    assert run("explain", "%").code == 3


def test_terms_are_sentences_and_lead_to_commands_that_exist():
    for term in all_terms():
        assert normal(term.term), term
        assert not term.text[0].islower(), term
        assert term.text.endswith((".", ")")), term
        assert "`" not in term.text, term
        assert set(term.see) <= COMMANDS, term


@pytest.mark.parametrize("question", ["exit codes", "exit-codes", "return codes"])
def test_all_exit_codes_are_found_together(question):
    found = find(question)
    assert {term.kind for term in found} == {"exit code"}
    assert {"0", "3", "7", "8"} <= {term.term for term in found}
