"""Puts the Python of `numsan replay` on the path of tests."""
import pathlib
import sys

SOURCES = pathlib.Path(__file__).resolve().parents[3] / "host" / "replay"
if str(SOURCES) not in sys.path:
    sys.path.insert(0, str(SOURCES))
