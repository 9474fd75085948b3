"""Modules that are not what they seem: compiled by TorchScript, or taken apart by hooks as DeepSpeed and FSDP do."""
import pytest

import beside


@pytest.mark.parametrize("name", ["script.py", "hooks.py"])
def test_same_and_found(name, warm, tmp_path):
    beside.check_forked(name, tmp_path, place=beside.PROGRAMS / name, clean_stderr=False)  # torch warns last
