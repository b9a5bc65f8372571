"""Wrong changes are made where they should be, and a test that fails finds them."""

import ast
from pathlib import Path

import pytest

from tests.mutants import kept, report, runner
from tests.mutants.mutations import mutants_of, sample

ROOT = Path(__file__).resolve().parents[2]
MODULE = '''
"""A module."""
LEAST = 2


class Shop:
    """A shop."""

    def price(self, count: int, rebate: bool = False) -> int:
        """Cents."""
        if count < LEAST and not rebate:
            raise ValueError(f"{count} is less than {LEAST}")
        return count * 10
'''


def names(source: str) -> list[str]:
    return [mutant.name for mutant in mutants_of(ast.parse(source))]


def test_each_rule_is_changed_and_no_text_for_people():
    assert names(MODULE) == [
        "module: LEAST = 2 -> LEAST = 3",
        "Shop.price: False -> True",
        "Shop.price: count < LEAST and (not rebate) -> not rebate",
        "Shop.price: count < LEAST and (not rebate) -> count < LEAST",
        "Shop.price: count < LEAST -> count <= LEAST",
        "Shop.price: count < LEAST -> count >= LEAST",
        "Shop.price: not rebate -> rebate",
        "Shop.price: raise ValueError(f'{count} is less than {LEAST}') -> nothing",
        "Shop.price: return count * 10 -> return None",
        "Shop.price: count * 10 -> count // 10",
        "Shop.price: count * 10 -> count * 11",
    ]


@pytest.mark.parametrize(
    ("code", "mutants"),
    [
        ("x = a == 3", {"a == 3 -> a != 3", "a == 3 -> a == 4"}),
        ("x = min(a)", {"min(a) -> max(a)"}),
        ("x = a[1:]", {"a[1:] -> a[:]", "1: -> 2:"}),
        ("if a: b()", {"a -> not a", "b() -> nothing"}),
        ("x.y = a", {"x.y = a -> nothing"}),
        ("x = 'a' + b", {"'a' + b -> 'XXa' + b"}),
        ("while True: break", {"True -> False", "break -> continue"}),
        ("log.warning('%s', a)", set()),
        ("if TYPE_CHECKING: a()", set()),
        ("from a import b", set()),
    ],
)
def test_one_statement(code, mutants):
    assert {name.removeprefix("module: ") for name in names(code)} == mutants


def test_equal_changes_of_one_function_are_told_apart():
    found = names("def f(a):\n    return a < b or a < b")
    assert "f: a < b -> a <= b" in found
    assert "f: a < b -> a <= b [2]" in found


def test_undoing_a_mutant_leaves_the_module_as_it_was():
    tree = ast.parse(MODULE)
    before = ast.unparse(tree)
    for mutant in mutants_of(tree):
        mutant.make()
        assert ast.unparse(tree) != before
        mutant.undo()
        assert ast.unparse(tree) == before


def test_a_sample_stays_the_same_when_another_function_is_added():
    few = mutants_of(ast.parse(MODULE))
    more = mutants_of(ast.parse("def first(a):\n    return a + 1\n" + MODULE))
    chosen = {few[at].name for at in sample(few, 5)}
    assert len(chosen) == 5
    assert chosen >= {more[at].name for at in sample(more, 5)} & {mutant.name for mutant in few}
    assert sample(few, 99) == list(range(len(few)))


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A project with one module; gives a function that tests its mutants with these tests."""
    (tmp_path / "shop.py").write_text(MODULE)
    monkeypatch.setattr(runner, "ROOT", tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    def survivors(tests: str) -> set[str]:
        (tmp_path / "test_shop.py").write_text(f"import pytest\nfrom shop import Shop\n\n{tests}")
        mutants = mutants_of(ast.parse(MODULE))
        everything = range(len(mutants))
        verdicts = list(runner.run_module("shop.py", ["test_shop.py"], 10, everything, 1e12))
        assert sorted(verdict.mutant for verdict in verdicts) == list(everything)
        return {
            mutants[verdict.mutant].name
            for verdict in verdicts
            if verdict.outcome is runner.Outcome.SURVIVED
        }

    return survivors


WHOLE = """
def test_prices():
    assert Shop().price(2) == 20
    assert Shop().price(1, True) == 10
    with pytest.raises(ValueError):
        Shop().price(1)
"""


@pytest.mark.long
def test_tests_that_look_at_every_rule_leave_no_mutant(shop):
    assert shop(WHOLE) == set()


@pytest.mark.slow
def test_what_no_test_looks_at_survives(shop):
    assert shop("def test_price():\n    assert Shop().price(5) == 50\n") == {
        "module: LEAST = 2 -> LEAST = 3",
        "Shop.price: False -> True",
        "Shop.price: count < LEAST and (not rebate) -> count < LEAST",
        "Shop.price: count < LEAST -> count <= LEAST",
        "Shop.price: not rebate -> rebate",
        "Shop.price: raise ValueError(f'{count} is less than {LEAST}') -> nothing",
    }


@pytest.mark.slow
def test_tests_that_fail_anyway_say_nothing_about_mutants(shop):
    with pytest.raises(runner.BaselineFailed, match="test_wrong"):
        shop("def test_wrong():\n    assert Shop().price(5) == 51\n")


def test_the_declared_modules_and_tests_exist():
    rules = report.load_rules()
    assert 12 <= len(rules) <= 25
    for rule in rules:
        assert (ROOT / rule.path).is_file()
        assert rule.tests
        assert all((ROOT / test).is_file() for test in rule.tests)


@pytest.mark.slow
def test_each_reason_is_for_a_mutant_that_exists():
    declared = {rule.path for rule in report.load_rules()}
    for path, reasons in report.load_reasons().items():
        assert path in declared
        existing = {mutant.name for mutant in mutants_of(ast.parse((ROOT / path).read_bytes()))}
        assert not set(reasons) - existing


def test_a_result_is_kept_until_the_module_or_its_tests_change(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "_FOLDER", tmp_path / "mutants")
    monkeypatch.setattr(kept, "_ROOT", tmp_path)
    (tmp_path / "shop.py").write_text(MODULE)
    (tmp_path / "test_shop.py").write_text(WHOLE)
    rule = report.Rule("shop.py", ["test_shop.py"], 4)
    row = report.Row("shop.py", 11, 5, 4, ["a"], 1.5, 0)
    assert kept.load_kept(rule, 5) is None
    kept.keep(rule, 5, row._replace(left_out=1))
    assert kept.load_kept(rule, 5) is None
    kept.keep(rule, 5, row)
    assert kept.load_kept(rule, 5) == kept.load_kept(rule, 4) == row
    assert kept.load_kept(rule, 6) is kept.load_kept(rule, None) is None
    (tmp_path / "test_shop.py").write_text(WHOLE + "\n")
    assert kept.load_kept(rule, 5) is None
    kept.keep(rule, None, row)
    assert kept.load_kept(rule, None) == kept.load_kept(rule, 6) == row


def test_tables_have_a_sum_and_survivors_their_reasons():
    rows = [
        report.Row("a.py", 30, 20, 19, ["f: a < b -> a <= b"], 1.0, 0),
        report.Row("b.py", 10, 10, 10, [], 1.0, 0),
    ]
    assert report.table(rows).splitlines()[2:] == [
        "| `a.py` | 30 | 20 | 19 | 1 | 95.0% |",
        "| `b.py` | 10 | 10 | 10 | 0 | 100.0% |",
        "| all | 40 | 30 | 29 | 1 | 96.7% |",
    ]
    assert report.survivors(rows, {"a.py": {"f: a < b -> a <= b": "why"}}).splitlines() == [
        "`a.py`",
        "",
        "* f: `a < b`",
        "  -> `a <= b`: why",
    ]


def test_the_document_has_each_module_and_a_reason_for_each_survivor():
    text = report.DOCUMENT.read_text("utf-8")
    assert "no reason yet" not in text
    for rule in report.load_rules():
        assert f"| `{rule.path}` |" in text
