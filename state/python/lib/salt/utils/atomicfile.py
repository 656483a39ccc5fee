import os
import tempfile


class _AtomicWFile:
    """Writes beside a file, and takes its place at the end."""

    def __init__(self, fhanlde, tmp_filename, filename):
        self._fh, self._tmp_filename, self._filename = fhanlde, tmp_filename, filename

    def __getattr__(self, name):
        return getattr(self._fh, name)

    def __enter__(self):
        return self

    def __exit__(self, kind, v, tb):
        if kind is None:
            self.close()
        else:
            self._fh.close()
            os.remove(self._tmp_filename)

    def close(self):
        if self._fh.closed:
            return
        self._fh.close()
        if os.path.isfile(self._filename):
            os.chmod(self._tmp_filename, os.stat(self._filename).st_mode & 0o7777)
        os.replace(self._tmp_filename, self._filename)


def atomic_open(filename, mode="w"):
    made = tempfile.NamedTemporaryFile(mode=mode if "b" in mode else "w", prefix=".___atomic_write",
                                       dir=os.path.dirname(os.path.abspath(filename)), delete=False)
    return _AtomicWFile(made, made.name, filename)
