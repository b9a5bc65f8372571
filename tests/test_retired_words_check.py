"""The check of retired words finds what it is for."""

from tests.checks import retired_words as checks


def test_old_names_and_persons_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "ROOT", tmp_path)
    name, person = "Shared" + "Page", "no" + "body"
    (tmp_path / "a.py").write_text(f'class {name}:\n    """Read by {person}."""\n')
    other = "every" + "one"
    (tmp_path / "c.py").write_text(f"def {person}s_{other}_reads(): ...\n{person}ing = one = 1\n")
    (tmp_path / "b.md").write_text(f'Not "{person}".\n\n`storage/{"read" + "ing"}/x`\n')
    assert list(checks.retired(["a.py", "b.md", "c.py"])) == [
        f"a.py:1: {name} has another name now",
        f"a.py:2: {person}: name the program",
        f"b.md:3: storage/{'read' + 'ing'} has another name now",
        f"c.py:1: {person}s: name the program",
        f"c.py:1: {other}: name the program",
    ]
