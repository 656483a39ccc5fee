from configparser import *  # noqa: F401,F403
from configparser import __doc__  # noqa: F401
import configparser as _all


def __getattr__(name):
    return getattr(_all, name)
