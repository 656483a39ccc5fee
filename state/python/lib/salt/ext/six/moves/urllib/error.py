from urllib.error import *  # noqa: F401,F403
import urllib.error as _all


def __getattr__(name):
    return getattr(_all, name)
