from xmlrpc.client import *  # noqa: F401,F403
from xmlrpc.client import __doc__  # noqa: F401
import xmlrpc.client as _all


def __getattr__(name):
    return getattr(_all, name)
