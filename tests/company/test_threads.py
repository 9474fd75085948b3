"""Other ways to run things at the same time: event loops, greenlets, threads older than torch, other interpreters."""
import beside
import pytest


def test_asyncio(warm, tmp_path):
    beside.check_forked("with_asyncio.py", tmp_path)


@pytest.mark.nightly
def test_gevent(warm, tmp_path):
    beside.check_process("with_gevent.py", tmp_path)


def test_thread_that_is_older_than_torch(warm, tmp_path):
    """It is seen from its first step of an optimizer on."""
    beside.check_process("older_thread.py", tmp_path)


@pytest.mark.nightly
def test_subinterpreter_in_which_torch_is_imported(warm, tmp_path):
    """Torch does not stand this itself: in the main interpreter no backward pass works any more."""
    beside.check_process("subinterpreter.py", tmp_path)
