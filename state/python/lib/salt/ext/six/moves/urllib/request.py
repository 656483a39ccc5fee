from urllib.request import *  # noqa: F401,F403
import urllib.request as _all


def __getattr__(name):
    return getattr(_all, name)
