"""Opens, makes and removes files as root without following what other users control.

This is the rule of the agent's own package artifact/walk. A link is followed if root alone controls it, or if its target belongs
to those who control it: its owner, and those who can write to a directory above it. A file with several names in such
a directory has to belong to them, too. Files are opened name by name with descriptors, so no user can exchange a part of the path
meanwhile. All other users than root get what the kernel does.
"""
import contextlib
import errno
import os
import stat
import struct

DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
KINDS = {stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}
STAFF = 50  # Debian gives this group /usr/local


def is_root():
    return os.geteuid() == 0


class Unsafe(PermissionError):
    """A path of another user that root does not follow."""

    def __str__(self):
        return "%s: %s" % (self.filename, self.strerror)


def refusal(path, reason, hint, code="C072"):
    """The agent finds these words in an exception, and blames the host and not the release."""
    return Unsafe(errno.EACCES, "refused, since %s (hint: %s [%s])" % (reason, hint, code), path)


class Raced(Exception):
    """A name was given to another file while it was opened."""


def named(who):
    return "any user" if who[0] == "other" else "%s %d" % who[:2]


def controls(who, st):
    """Whether a user, a group or everyone can write to a file anyway."""
    if who[0] == "user":
        return st.st_uid == who[1]
    if who[0] == "group":
        return st.st_gid == who[1] and bool(st.st_mode & 0o020) or bool(who[2]) and who[2] <= {st.st_uid}
    return bool(st.st_mode & 0o002) and not st.st_mode & stat.S_ISVTX


def group(gid, st, fd):
    """A group that can write to a directory, as one that counts as another user; None if it does not."""
    import grp
    import pwd
    try:
        names = grp.getgrgid(gid).gr_mem
    except KeyError:
        names = []
    found = {user.pw_uid for user in pwd.getpwall() if user.pw_gid == gid or user.pw_name in names}
    more = frozenset(found - {0, st.st_uid})
    staffs = st.st_uid == 0 and gid == STAFF and (os.readlink("/proc/self/fd/%d" % fd) + "/").startswith("/usr/local/")
    if gid == 0 or not more and (st.st_uid != 0 and st.st_uid in found or staffs):
        return None
    return "group", gid, more


def access_list(fd):
    """The entries of an access control list that allow writing: pairs of a tag and a number."""
    try:
        raw = os.getxattr("/proc/self/fd/%d" % fd, "system.posix_acl_access")
    except OSError as e:
        if e.errno in (errno.ENODATA, errno.EOPNOTSUPP, errno.ENOENT):
            return [(4, None)]
        raise
    return [(tag, number) for tag, allowed, number in struct.iter_unpack("<HHI", raw[4:]) if allowed & 2]


def controllers(fd):
    """Who can exchange the names in a directory, beside root. In a sticky one, only owners can."""
    st = os.fstat(fd)
    found = [("user", st.st_uid, None)] if st.st_uid != 0 else []
    if st.st_mode & stat.S_ISVTX:
        return found
    if st.st_mode & 0o020:  # without these bits, a list allows nobody to write
        for tag, number in access_list(fd):
            if tag == 2 and number != 0:
                found.append(("user", number, None))
            elif tag in (4, 8):
                found.append(group(st.st_gid if tag == 4 else number, st, fd))
    if st.st_mode & 0o002:
        found.append(("other", 0, None))
    return [who for who in found if who]


class Walk:
    """A walk along a path. It keeps the directories on the way open."""

    def __init__(self, path):
        self.path = os.fsdecode(path)
        if not self.path:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.path)
        whole = self.path if self.path[:1] == "/" else os.getcwd() + "/" + self.path
        self.way = [(os.open("/", DIRECTORY), "")]
        self.controlling = [controllers(self.way[0][0])]
        self.todo = self.split(whole)
        self.links = 40
        self.magic = False  # the path ends at a link of /proc to an open file, which has no path
        self.owed = []  # links that others control: the names left behind the link, its path, and who they are

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.back(0)

    @staticmethod
    def split(path):
        return [name for name in (path + "." if path.endswith("/") else path).split("/") if name]

    @property
    def here(self):
        return self.way[-1][0]

    def at(self, name):
        return self.way[-1][1] + "/" + name

    def back(self, keep):
        while len(self.way) > keep:
            os.close(self.way.pop()[0])
            self.controlling.pop()

    def by(self):
        """Who controls the names in the directory that the walk has reached."""
        found = []
        for who in self.controlling:
            found += [w for w in who if w not in found]
        return found

    def to_end(self, follow):
        """Walks to the directory of the last name, and returns that name. follow is for a link there."""
        while True:
            name = self.todo.pop(0)
            if name in (".", ".."):
                if name == "..":
                    self.back(max(1, len(self.way) - 1))
                if not self.todo:
                    return "."
                self.settle(os.fstat(self.here))
                continue
            if not self.todo:
                st = self.lstat(name)
                if not follow or st is None or not stat.S_ISLNK(st.st_mode):
                    return name
                if st.st_uid == 0 and not self.by() and not self.owed and st.st_dev == os.stat("/proc").st_dev:
                    self.magic = True
                    return name
                self.follow(name)
                continue
            try:
                fd = os.open(name, DIRECTORY, dir_fd=self.here)
            except OSError as e:
                if e.errno not in (errno.ENOTDIR, errno.ELOOP):
                    raise
                self.follow(name)
                continue
            self.way.append((fd, self.at(name)))
            self.controlling.append(controllers(fd))
            self.settle(os.fstat(fd))

    def lstat(self, name):
        try:
            return os.stat(name, dir_fd=self.here, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def follow(self, name):
        link = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.here)
        try:
            st = os.fstat(link)
            if not stat.S_ISLNK(st.st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), self.path)
            target = os.readlink("", dir_fd=link)
        finally:
            os.close(link)
        self.links -= 1
        if self.links < 0:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), self.path)
        by = self.by() + ([("user", st.st_uid, None)] if st.st_uid != 0 else [])
        if by:
            self.owed.append((len(self.todo), self.at(name), by))
        if target[:1] == "/":
            self.back(1)
        self.todo = self.split(target) + self.todo

    def settle(self, st):
        """Checks the target of the links whose names have all been walked."""
        while self.owed and len(self.todo) <= self.owed[-1][0]:
            _, link, by = self.owed.pop()
            self.check(link, by, st)

    def check(self, link, by, st):
        for who in by:
            if not controls(who, st):
                raise refusal(self.path, "%s is controlled by %s and leads to a file or directory of user %d" % (
                    link, named(who), st.st_uid), "look at %s with ls -l: remove it, or make its target belong to %s" % (
                    link, named(who)))

    def arrived(self, name, fd):
        """Checks the file at the end of the path."""
        st = os.fstat(fd)
        self.todo = []
        self.settle(st)
        if stat.S_ISDIR(st.st_mode):
            return st
        by = self.by()
        kind = KINDS.get(stat.S_IFMT(st.st_mode))
        if kind and st.st_uid != 0:
            raise refusal(self.path, "it is a %s of user %d" % (kind, st.st_uid), "remove it, or put a file in its place")
        if by and (st.st_nlink != 1 or not self.still(name, fd)):
            self.check(self.path, by, st)
        return st

    def still(self, name, fd):
        """Whether a file still has its name. A user can give a file of root a name, and remove it between the moments when it
        is opened and when its names are counted. The list waits until a removal in progress has ended."""
        directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.here)
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, directory)
            next(stack.enter_context(os.scandir(directory)), None)
        try:
            full, above = os.readlink("/proc/self/fd/%d" % fd), os.readlink("/proc/self/fd/%d" % self.here)
        except FileNotFoundError:  # /proc is not mounted
            return True
        return full == above.rstrip("/") + "/" + name

    def open(self, flags, mode):
        follow = not flags & os.O_NOFOLLOW and flags & (os.O_CREAT | os.O_EXCL) != os.O_CREAT | os.O_EXCL
        name = self.to_end(follow)
        if self.magic:
            return os.open(name, flags | os.O_CLOEXEC, mode, dir_fd=self.here)
        try:
            looked = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.here)
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
            self.todo = []
            self.settle(os.fstat(self.here))  # a file made here is made for those who control the links
            try:
                return os.open(name, flags | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=self.here)
            except FileExistsError:
                if flags & os.O_EXCL:
                    raise
                raise Raced
        try:
            st = self.arrived(name, looked)
            if flags & os.O_CREAT and flags & os.O_EXCL:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), self.path)
            return self.really(name, st, flags)
        finally:
            os.close(looked)

    def really(self, name, looked, flags):
        """Opens what was looked at. What another user controls never makes it wait."""
        wait = flags & os.O_NONBLOCK or not self.by() and looked.st_uid == 0
        plain = flags & ~(os.O_CREAT | os.O_TRUNC) | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            fd = os.open(name, plain | (0 if wait else os.O_NONBLOCK), dir_fd=self.here)
        except OSError as e:
            # EAGAIN: a process has a lease of it; ENXIO: it is a pipe by now
            if e.errno in (errno.ELOOP, errno.ENOENT, errno.EAGAIN, errno.ENXIO):
                raise Raced
            raise
        try:
            st = self.arrived(name, fd)
            if (st.st_dev, st.st_ino) != (looked.st_dev, looked.st_ino):
                raise Raced
            if flags & os.O_TRUNC and stat.S_ISREG(st.st_mode):
                os.ftruncate(fd, 0)
            if not wait and not flags & os.O_PATH:
                os.set_blocking(fd, True)
            return fd
        except BaseException:
            os.close(fd)
            raise


@contextlib.contextmanager
def errors_of(path):
    """Names the path in errors, which would only have its last name."""
    try:
        yield
    except OSError as e:
        if not isinstance(e, Unsafe) and e.errno is not None:
            e.filename = path
        raise


def opened(path, flags, mode=0o666):
    """os.open, which root uses for all files: also as the opener of open."""
    if not is_root():
        return os.open(path, flags, mode)
    with errors_of(path):
        for _ in range(20):
            with contextlib.suppress(Raced), Walk(path) as walk:
                return walk.open(flags, mode)
        raise refusal(path, "another process exchanges it all the time, or has a lease of it", "see who has it open with: "
                      "fuser -v %s" % path, "C073")


def reading(path):
    return open(path, "rb", opener=opened)


@contextlib.contextmanager
def directory(path):
    """A descriptor of a directory."""
    fd = opened(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def parent(path):
    """A descriptor of the directory of a path, the path's last name, and whether others than root control that directory."""
    path = os.fsdecode(path)
    above, name = os.path.split(path.rstrip("/"))
    if not is_root():
        fd = os.open(above or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield fd, name, False
        finally:
            os.close(fd)
        return
    with Walk(path.rstrip("/")) as walk:
        with errors_of(path):
            name = walk.to_end(False)
            walk.todo = []
            walk.settle(os.fstat(walk.here))
        yield walk.here, name, bool(walk.by())


def replace(source, dest):
    with parent(source) as (one, name, _), parent(dest) as (other, new, _):
        try:
            os.replace(name, new, src_dir_fd=one, dst_dir_fd=other)
        except OSError as e:
            e.filename, e.filename2 = source, dest
            raise


def remove(path):
    with parent(path) as (above, name, _), errors_of(path):
        os.unlink(name, dir_fd=above)


def remove_tree(path):
    """Removes a file or a directory with what is in it, and no link in it is followed."""
    with parent(path) as (above, name, _), errors_of(path):
        _remove(above, name)


def _remove(above, name):
    try:
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    except OSError as e:
        if e.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        os.unlink(name, dir_fd=above)
        return
    try:
        for inner in os.listdir(fd):
            _remove(fd, inner)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=above)


def temporary(above, prefix, suffix=""):
    """A new file with a random name in an open directory: its descriptor and name."""
    for _ in range(100):
        name = prefix + os.urandom(6).hex() + suffix
        with contextlib.suppress(FileExistsError):
            return os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=above), name
    raise FileExistsError(errno.EEXIST, "no name is free for a temporary file")


class Temporary:
    """A new file in the directory of another one, whose place it takes at the end. Nothing is done to it by its name."""

    def __init__(self, dest, prefix):
        self.dest = dest
        with parent(dest) as (above, self.last, self.controlled):
            self.descriptor, self.name = temporary(above, prefix)
            self.above = os.dup(above)

    def take(self, owner=True):
        """Takes the place of the file, with the mode and owner of the one that is there."""
        adopt(self.descriptor, self.dest, self.controlled, owner)
        with errors_of(self.dest):
            os.replace(self.name, self.last, src_dir_fd=self.above, dst_dir_fd=self.above)
        self.name = None

    def end(self):
        """Removes the file if it has not taken its place, and closes the directory."""
        above, self.above = self.above, None
        if above is not None:
            if self.name is not None:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self.name, dir_fd=above)
            os.close(above)


@contextlib.contextmanager
def replacing(dest, prefix):
    made = Temporary(dest, prefix)
    try:
        yield made
    finally:
        made.end()
        os.close(made.descriptor)


def copy(source, dest):
    """Copies between open files."""
    while True:
        data = memoryview(os.read(source, 1 << 16))
        if not data:
            return
        while data:
            data = data[os.write(dest, data):]


def adopt(fd, path, controlled, owner=True):
    """Gives an open file the owner and mode of the file at a path, if there is one."""
    try:
        there = opened(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        st = os.fstat(there)
    finally:
        os.close(there)
    if stat.S_ISREG(st.st_mode):
        own = os.fstat(fd)
        if owner and (own.st_uid, own.st_gid) != (st.st_uid, st.st_gid):
            os.fchown(fd, st.st_uid, st.st_gid)
        os.fchmod(fd, stat.S_IMODE(st.st_mode) & (0o777 if controlled else 0o7777))


def copy_tree(source, dest, above=()):
    """Copies what is in a directory into another one, which is made if it is missing."""
    with directory(source) as fd:
        st = os.fstat(fd)
        names = sorted(os.listdir(fd))
    if (st.st_dev, st.st_ino) in above:
        raise OSError(errno.ELOOP, "a directory contains a link to itself", source)
    make_directories(dest)
    for name in names:
        copy_one(os.path.join(source, name), os.path.join(dest, name), (*above, (st.st_dev, st.st_ino)))
    with directory(dest) as fd:
        keep_times(fd, st)


def copy_one(source, dest, above):
    fd = opened(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        st = os.fstat(fd)
        if stat.S_ISDIR(st.st_mode):
            copy_tree(source, dest, above)
            return
        if not stat.S_ISREG(st.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", source)
        to = opened(dest, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC)
        try:
            copy(fd, to)
            keep_times(to, st)
        finally:
            os.close(to)
    finally:
        os.close(fd)


def keep_times(fd, st):
    os.fchmod(fd, stat.S_IMODE(st.st_mode) & 0o1777)
    os.utime(fd, ns=(st.st_atime_ns, st.st_mtime_ns))


def make_directories(path):
    try:
        with directory(path):
            return
    except FileNotFoundError:
        pass
    above = os.path.dirname(path.rstrip("/"))
    if above:
        make_directories(above)
    with parent(path) as (above, name, _), errors_of(path), contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o777, dir_fd=above)
