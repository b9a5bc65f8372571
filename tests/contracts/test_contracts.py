"""Contracts stay as they are written down; see contracts.py."""

import pytest

from tests.contracts.contracts import CONTRACTS, HERE, as_text


@pytest.mark.parametrize("name", CONTRACTS)
def test_a_contract_is_what_is_written_down(name: str) -> None:
    assert as_text(CONTRACTS[name]()) == (HERE / name).read_text("utf-8")
