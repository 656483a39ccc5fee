from queue import *  # noqa: F401,F403
from queue import __doc__  # noqa: F401
import queue as _all


def __getattr__(name):
    return getattr(_all, name)
