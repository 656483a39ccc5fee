import os

from salt.utils import _walk


class _AtomicWFile:
    """Writes beside a file, and takes its place at the end."""

    def __init__(self, fhandle, temporary):
        self._fh, self._temporary = fhandle, temporary

    def __getattr__(self, name):
        return getattr(self._fh, name)

    def __enter__(self):
        return self

    def __exit__(self, kind, v, tb):
        if kind is None:
            self.close()
        else:
            self._end()

    def close(self):
        if self._fh.closed:
            return
        try:
            self._fh.flush()
            self._temporary.take(_walk.is_root())
        finally:
            self._end()

    def _end(self):
        try:
            self._temporary.end()
        finally:
            self._fh.close()


def atomic_open(filename, mode="w"):
    temporary = _walk.Temporary(filename, ".___atomic_write")
    return _AtomicWFile(os.fdopen(temporary.descriptor, mode if "b" in mode else "w"), temporary)
