"""Each kind of damage, done to real brokers' stores: repaired, they have nothing wrong.

The short run does every other kind to one store.
"""

import pytest

from tests.support import golden
from tests.support.damages import NotHere, kinds
from tests.support.examples import one_in
from tests.support.mended import damage_and_repair

pytestmark = pytest.mark.filterwarnings("ignore::storage.errors.IncompleteStoreWarning")
"""Some kinds of damage take the log's last files away, and readers warn of that."""

NAME = "small-files-4.9"
"""Has several files of everything, and fits nearly all kinds."""
SHORT = sorted(kind for kind in kinds() if "lowest" not in kind)


def _problems(name, wanted, folder):
    problems, done = {}, 0
    for kind in wanted:
        try:
            _, _, found = damage_and_repair(golden.store(name), kind, folder)
        except NotHere:
            continue
        done += 1
        if found:
            problems[kind] = found[:3]
    assert done
    return problems


@pytest.mark.slow
@pytest.mark.parametrize("part", one_in(2, range(4)))
def test_a_repaired_store_is_clean_and_every_whole_record_is_readable(part, tmp_path):
    assert _problems(NAME, SHORT[part::4], tmp_path) == {}


@pytest.mark.long
@pytest.mark.parametrize("name", golden.names())
def test_all_golden_stores_are_repaired_from_all_kinds_of_damage(name, tmp_path):
    assert _problems(name, sorted(kinds()), tmp_path) == {}
