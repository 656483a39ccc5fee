from http.cookies import *  # noqa: F401,F403
from http.cookies import __doc__  # noqa: F401
import http.cookies as _all


def __getattr__(name):
    return getattr(_all, name)
