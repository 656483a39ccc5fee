from http.client import *  # noqa: F401,F403
from http.client import __doc__  # noqa: F401
import http.client as _all


def __getattr__(name):
    return getattr(_all, name)
