"""The check of retired words finds what it is for."""

from tests.checks import retired_words as checks


def test_old_names_and_persons_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "ROOT", tmp_path)
    name, person = "Shared" + "Page", "no" + "body"
    (tmp_path / "a.py").write_text(f'class {name}:\n    """Read by {person}."""\n')
    (tmp_path / "b.md").write_text(f'Not "{person}".\n\n`storage/{"read" + "ing"}/x`\n')
    assert list(checks.retired(["a.py", "b.md"])) == [
        f"a.py:1: {name} has another name now",
        f"a.py:2: {person}: name the program",
        f"b.md:3: storage/{'read' + 'ing'} has another name now",
    ]
