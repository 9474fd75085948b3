"""Which parameters of a test CI takes: the others show the same on further programs, or in further ways."""
import pytest


def in_ci(values, *taken):
    """For parametrize: those that are not `taken` are marked nightly. Fails where one that is taken is none."""
    assert set(taken) <= set(values), (taken, values)
    return [value if value in taken else pytest.param(value, marks=pytest.mark.nightly) for value in values]
