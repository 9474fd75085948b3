"""Before any program imports torch: loads the library that takes the dispatch key."""
import ctypes
import os

ctypes.CDLL(os.environ["TAKE_KEY"])
