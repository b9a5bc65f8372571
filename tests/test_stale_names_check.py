"""The check of stale names finds errors."""

from tests.checks import stale_names as checks


def test_names_that_lead_nowhere_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "ROOT", tmp_path)
    (tmp_path / "storage").mkdir()
    there = tmp_path / "storage" / "there.py"
    there.write_text(
        '"""See storage.there.name, storage.gone, ``lost.py`` and there.py."""\n\nname = 1\n'
    )
    page = tmp_path / "page.md"
    page.write_text("`storage/there.py`, `storage/gone.py`, `storage.there.other`\n")
    assert list(checks.stale([there, page])) == [
        "storage/there.py:1: there is no storage.gone",
        "storage/there.py:1: there is no file lost.py",
        "page.md:1: there is no storage/gone.py",
        "page.md:1: there is no storage.there.other",
    ]
