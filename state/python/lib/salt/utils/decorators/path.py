import functools

import salt.utils.path
from salt.exceptions import CommandNotFoundError


def which(exe):
    """Makes a function fail where a program does not exist."""
    def wrapper(function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            if salt.utils.path.which(exe) is None:
                raise CommandNotFoundError("The '{}' binary was not found in $PATH.".format(exe))
            return function(*args, **kwargs)
        return wrapped
    return wrapper


def which_bin(exes):
    def wrapper(function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            if salt.utils.path.which_bin(exes) is None:
                raise CommandNotFoundError("None of provided binaries({}) was found in $PATH.".format(exes))
            return function(*args, **kwargs)
        return wrapped
    return wrapper
