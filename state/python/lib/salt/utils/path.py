import os
import posixpath  # noqa: F401
import shutil


def which(exe=None):
    """The path of a program, or None."""
    if not exe:
        return None
    return shutil.which(os.path.expanduser(str(exe)))


def which_bin(exes):
    if not isinstance(exes, (list, tuple)):
        return None
    for exe in exes:
        path = which(exe)
        if path:
            return path
    return None


def islink(path):
    return os.path.islink(path)


def readlink(path):
    return os.readlink(path)


def join(*parts, **kwargs):
    if not parts:
        return ""
    root, rest = str(parts[0]), [str(p).lstrip("/") for p in parts[1:]]
    return os.path.normpath(os.path.join(root, *rest)) if rest else os.path.normpath(root)


def os_walk(top, *args, **kwargs):
    return os.walk(top, *args, **kwargs)


def check_or_die(command):
    from salt.exceptions import CommandNotFoundError
    if not command:
        raise CommandNotFoundError("'{}' is not a valid command.".format(command))
    if not which(command):
        raise CommandNotFoundError("'{}' is not in the path".format(command))


def is_readable(path):
    return os.access(path, os.F_OK) and os.access(path, os.R_OK)


def safe_path(path, allow_path=None):
    return True


def expand(path):
    return os.path.expanduser(os.path.expandvars(path))


def sanitize_win_path(winpath):
    return "".join("_" if c in '<>|?*:"' else c for c in winpath).rstrip(" .")
