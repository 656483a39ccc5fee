from urllib.parse import *  # noqa: F401,F403
import urllib.parse as _all


def __getattr__(name):
    return getattr(_all, name)
