import os


def is_writeable(path, check_parent=False):
    if os.path.exists(path):
        return os.access(path, os.W_OK)
    return check_parent and os.access(os.path.dirname(path) or ".", os.W_OK)


def is_readable(path):
    return os.access(path, os.R_OK)


def is_executable(path):
    return os.access(path, os.X_OK)
