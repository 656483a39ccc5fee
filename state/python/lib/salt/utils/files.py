import codecs
import contextlib
import errno
import os
import re
import shutil
import tempfile

import salt.utils.stringutils
from salt.utils import _walk

TEMPFILE_PREFIX = "__salt.tmp."
LOCAL_PROTOS, REMOTE_PROTOS = ("", "file"), ("http", "https", "ftp", "swift", "s3")
VALID_PROTOS = ("salt", "file") + REMOTE_PROTOS
HASHES = {"sha512": 128, "sha384": 96, "sha256": 64, "sha224": 56, "sha1": 40, "md5": 32}
HASHES_REVMAP = {v: k for k, v in HASHES.items()}


def fopen(*args, **kwargs):
    """open, with UTF-8 for texts. Root follows no links of other users, and opens none of their pipes."""
    mode = args[1] if len(args) > 1 else kwargs.get("mode", "r")
    if "b" not in mode:
        kwargs.setdefault("encoding", "utf-8")
    if _walk.is_root() and len(args) < 8 and not isinstance(args[0] if args else kwargs.get("file"), int):
        kwargs.setdefault("opener", _walk.opened)
    return open(*args, **kwargs)


LOCK_TRIES, LOCK_WAIT = 600, 0.05  # 30 seconds


@contextlib.contextmanager
def flopen(*args, **kwargs):
    import fcntl
    with fopen(*args, **kwargs) as f:
        _lock(f, LOCK_TRIES if _walk.is_root() else None)
        try:
            yield f
        finally:
            fcntl.flock(f.fileno(), fcntl.LOCK_UN)


def _lock(f, tries):
    """Locks a file. Each user who can read it can lock it, so root waits for a limited time."""
    import fcntl
    import time
    while tries is not None:
        try:
            return fcntl.flock(f.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            tries -= 1
            if tries <= 0:
                raise _walk.refusal(f.name, "another process has locked it for %d seconds" % (LOCK_TRIES * LOCK_WAIT),
                                    "see who has it open with: fuser -v %s" % f.name, "C073")
            time.sleep(LOCK_WAIT)
    return fcntl.flock(f.fileno(), fcntl.LOCK_SH)


@contextlib.contextmanager
def fpopen(*args, **kwargs):
    uid, gid, mode = (kwargs.pop(k, -1) for k in ("uid", "gid", "mode"))
    with fopen(*args, **kwargs) as f:
        if uid != -1 or gid != -1:
            os.fchown(f.fileno(), uid, gid)
        if mode != -1:
            os.fchmod(f.fileno(), mode)
        yield f


def mkstemp(suffix=None, prefix=TEMPFILE_PREFIX, dir=None, text=False, close_fd=True):
    if _walk.is_root():
        place = os.path.abspath(dir or tempfile.gettempdir())
        with _walk.directory(place) as above:
            descriptor, name = _walk.temporary(above, prefix or "", suffix or "")
        path = os.path.join(place, name)
    else:
        descriptor, path = tempfile.mkstemp(suffix, prefix, dir, text)
    if not close_fd:
        return descriptor, path
    os.close(descriptor)
    return path


def copyfile(source, dest, backup_mode="", cachedir=""):
    """Copies a file to its place in one step, with the mode and owner of what was there."""
    if not os.path.isfile(source):
        raise OSError(errno.ENOENT, "no such file", source)
    if not os.path.isdir(os.path.dirname(dest)):
        raise OSError(errno.ENOENT, "no such directory", os.path.dirname(dest))
    with _walk.reading(source) as f, _walk.replacing(dest, TEMPFILE_PREFIX) as temporary:
        _walk.copy(f.fileno(), temporary.descriptor)
        temporary.take()


def rename(src, dst):
    _walk.replace(src, dst)


def recursive_copy(source, dest):
    if _walk.is_root():
        _walk.copy_tree(source, dest)
    else:
        shutil.copytree(source, dest, dirs_exist_ok=True)


def remove(path):
    try:
        _walk.remove(path)
    except FileNotFoundError:
        pass


def safe_rm(tgt):
    try:
        _walk.remove(tgt)
    except OSError:
        pass


def rm_rf(path):
    if os.path.islink(path) or not os.path.isdir(path):
        remove(path)
    elif _walk.is_root():
        _walk.remove_tree(path)
    else:
        shutil.rmtree(path)


def is_empty(filename):
    try:
        return os.stat(filename).st_size == 0
    except OSError:
        return False


def is_fcntl_available(check_sunos=False):
    return True


@contextlib.contextmanager
def set_umask(mask):
    if mask is None:
        yield
        return
    old = os.umask(mask)
    try:
        yield
    finally:
        os.umask(old)


def normalize_mode(mode):
    if mode is None:
        return None
    mode = str(mode).replace("0o", "0").strip('"').strip("'").lstrip("0")
    return mode.zfill(4)


def list_files(directory):
    found = set()
    for root, dirs, files in os.walk(directory):
        found.update([root] + [os.path.join(root, name) for name in files + dirs])
    return list(found)


def _start(path, size=512):
    with _walk.reading(path) as f:
        return f.read(size)


def is_text(fp_, blocksize=512):
    block = fp_.read(blocksize) if hasattr(fp_, "read") else _start(fp_, blocksize)
    block = salt.utils.stringutils.to_bytes(block)
    if b"\x00" in block:
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(block)
        return True
    except UnicodeDecodeError:
        odd = sum(1 for b in block if b < 32 and b not in (7, 8, 9, 10, 12, 13, 27))
        return odd / max(1, len(block)) <= 0.30


def is_binary(path):
    return os.path.isfile(path) and not is_text(path)


def safe_filename_leaf(file_basename):
    return re.sub(r"[/\\:*?\"<>|]", lambda m: "%%%02X" % ord(m.group()), file_basename)


def safe_filepath(file_path_name, dir_sep=None):
    return "/".join(safe_filename_leaf(part) for part in file_path_name.split("/"))


def process_read_exception(exc, path, ignore=None):
    from salt.exceptions import CommandExecutionError
    codes = ignore if isinstance(ignore, (list, tuple)) else [ignore]
    if exc.errno in codes:
        return
    raise CommandExecutionError("Error %s encountered reading from %s: %s" % (exc.errno, path, exc.strerror))


@contextlib.contextmanager
def wait_lock(path, lock_fn=None, timeout=5, sleep=0.1, time_start=None):
    yield


def human_size_to_bytes(human_size):
    found = re.match(r"(\d+)([KMGTP]?)$", str(human_size))
    if not found:
        raise ValueError("a size is a number with one of K, M, G, T and P behind it, or none")
    return int(found.group(1)) * 1024 ** " KMGTP".index(found.group(2) or " ")


def st_mode_to_octal(mode):
    return oct(mode)[-4:]


def get_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
