"""The check of docstrings finds errors."""

import ast
from pathlib import Path

from tests.checks import docstrings as checks


def found(text: str) -> list[tuple[str, str]]:
    return [(name, error) for _, name, error in checks.untold(ast.parse(text))]


RAISING = """
{module}
class C:
    {of_class}
    def f(self):
        {of_function}
        if self:
            raise StoreClosedError("x")
        def inner():
            raise OtherError
    def _own(self):
        raise StoreClosedError("x")
"""


def test_an_error_is_to_be_named_by_the_function_its_class_or_its_module() -> None:
    def with_docs(module: str = "", of_class: str = "", of_function: str = "") -> str:
        return RAISING.format(
            module=f'"""{module}"""',
            of_class=f'"""{of_class}"""',
            of_function=f'"""{of_function}"""',
        )

    told = "Raises StoreClosedError."
    assert found(with_docs()) == [("f", "StoreClosedError")]
    assert found(with_docs(of_function=told)) == []
    assert found(with_docs(of_class=told)) == []
    assert found(with_docs(module=told)) == []
    assert found(with_docs(of_function="See Broker.f.")) == []


def test_mistakes_of_the_program_need_no_docstring() -> None:
    assert found('def f():\n    raise RuntimeError("x")\n') == []


def test_a_long_file_is_found(tmp_path: Path) -> None:
    for package in checks.ALL_PACKAGES:
        (tmp_path / package).mkdir()
    (tmp_path / "client" / "long.py").write_text("# x\n" * (checks.MOST_LINES + 1))
    [finding] = checks.findings(tmp_path)
    assert finding.startswith(f"client/long.py: {checks.MOST_LINES + 1} lines")
