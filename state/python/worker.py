# The worker: it reads questions from descriptor 3, and writes answers, and questions of its own, to descriptor 4.
# The package comment of state/python says more. This file needs Python 3.7 and its standard library.
import posix
import sys

# Imports of root. python3 runs without the module site, which would execute lines of .pth files and sitecustomize. No
# file is imported that another user can change.

SAFE = set()  # directories that root alone can change


def members(gid):
    """Whether a group has members beside root."""
    try:
        with open("/etc/group", "rb") as groups, open("/etc/passwd", "rb") as users:
            number = b"%d" % gid
            listed = any(line.split(b":")[2:3] == [number] and line.split(b":")[3].strip() not in (b"", b"root")
                         for line in groups)
            return listed or any(line.split(b":")[3:4] == [number] and line.split(b":")[2] != b"0" for line in users)
    except (OSError, IndexError):
        return True


def writer(at, st):
    """Who can write to a file or directory of root, beside root; None if root alone can."""
    if st.st_mode & 0o002:
        return "each user"
    if not st.st_mode & 0o020:
        return None
    # A process can have a group without being a member. Debian gives the group staff, without members, /usr/local.
    debian = st.st_gid == 50 and (at + "/").startswith("/usr/local/") and not members(50)
    if st.st_gid != 0 and not debian:
        return "group %d" % st.st_gid
    try:
        posix.getxattr(at, "system.posix_acl_access")
    except OSError as e:
        if e.errno in (61, 95):  # ENODATA, EOPNOTSUPP
            return None
    return "a user of its access control list"


def parts(path):
    return [word for word in path.split("/") if word not in ("", ".")]


def changer(place):
    """The part of a path that others than root can change, and who they are; None if there is none.

    A name that does not exist is such a part if others can make it."""
    if posix.geteuid() != 0:
        return None
    at, words, links, maker = "", parts(place), 40, None
    while words:
        word = words.pop(0)
        at = at.rpartition("/")[0] if word == ".." else at + "/" + word
        if at in SAFE or not at:
            maker = None
            continue
        try:
            st = posix.lstat(at)
        except OSError:
            return (at, maker) if maker else None
        kind = st.st_mode & 0o170000
        if st.st_uid != 0:
            return at, "user %d" % st.st_uid
        if kind == 0o120000:
            links -= 1
            if links < 0:
                return None
            target = posix.readlink(at)
            at, words = at.rpartition("/")[0], parts(target) + words
            if target[:1] == "/":
                at, maker = "", None
            continue
        maker = writer(at, st)
        sticky = st.st_mode & 0o1000 and kind == 0o040000  # only owners can replace what is in it
        if maker and not (sticky and words):
            return at, maker
        if kind == 0o040000 and not maker:
            SAFE.add(at)
    return None


class Guard:
    """Stands for Python's own finder of files, and refuses those that others than root can change."""

    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):
        if name in ("find_distributions", "invalidate_caches"):
            return getattr(self.finder, name)
        raise AttributeError(name)

    def find_spec(self, name, path=None, target=None):
        spec = self.finder.find_spec(name, path, target)
        if spec is not None:
            for place in [spec.origin, spec.cached, *(spec.submodule_search_locations or ())]:
                refuse(name, place)
        if name == "multiprocessing.context" and spec is not None:
            spec.loader = Forking(spec.loader)
        return spec


def refuse(name, place):
    found = changer(absolute(place)) if isinstance(place, str) else None
    if found:
        raise ImportError("root does not import %s: %s can change %s" % (name, found[1], found[0]), name=name)


class Forking:
    """Loads multiprocessing.context. A python3 that it starts would have neither this guard nor the tree's modules, so the
    start methods spawn and forkserver fork."""

    def __init__(self, loader):
        self.loader = loader

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        for name in ("SpawnProcess", "ForkServerProcess"):
            getattr(module, name)._Popen = staticmethod(module.ForkProcess._Popen)


def guard_code():
    """Refuses files that are executed by their paths, as by spec_from_file_location and runpy.run_path."""
    import _io
    from importlib.machinery import ExtensionFileLoader
    open_code, create = getattr(_io, "open_code", None), ExtensionFileLoader.create_module

    def guarded(path):
        refuse(path, path)
        return open_code(path)

    def create_module(self, spec):
        refuse(spec.name, self.path)
        return create(self, spec)

    if open_code is not None:  # Python 3.7 has none
        import io
        _io.open_code = io.open_code = guarded
    ExtensionFileLoader.create_module = create_module


def absolute(path):
    return path if path[:1] == "/" else posix.getcwd() + "/" + path


def guard():
    for place in [sys.executable or "", *sys.path]:
        found = changer(place)
        if found:
            sys.exit("root does not run %s: %s can change %s" % (sys.executable, found[1], found[0]))
    for at, finder in enumerate(sys.meta_path):
        if getattr(finder, "__name__", "") == "PathFinder":
            sys.meta_path[at] = Guard(finder)
            break
    guard_code()


guard()
REFUSED = []  # directories of packages that are not used


def add_directory(place):
    found = changer(place)
    if found:
        REFUSED.append("Python packages in %s are not used: %s can change %s" % (place, found[1], found[0]))
    elif place not in sys.path:
        sys.path.append(place)
        return True
    return False


def add_packages():
    """Adds the directories of packages, and those that their .pth files name. Lines that import code are not run."""
    import site
    site.setquit()
    site.setcopyright()
    site.sethelper()
    prefixes = [sys.prefix, sys.exec_prefix]
    at = os.path.dirname(os.path.abspath(sys.executable))
    for file in (at + "/pyvenv.cfg", os.path.dirname(at) + "/pyvenv.cfg"):
        if os.path.isfile(file) and not changer(file):
            with open(file, encoding="utf-8") as config:
                lines = [line.partition("=") for line in config]
            known = {k.strip().lower(): v.strip().lower() for k, _, v in lines}
            system = prefixes if known.get("include-system-site-packages") == "true" else []
            sys.prefix = sys.exec_prefix = os.path.dirname(at)
            prefixes = [sys.prefix] + system
            break
    for top in site.getsitepackages(prefixes):
        if os.path.isdir(top) and add_directory(top):
            for name in names_in(top):
                if name.endswith(".pth") and not name.startswith("."):
                    add_named(top, name)


def names_in(directory):
    try:
        return sorted(os.listdir(directory))
    except OSError:  # it has no .pth files that can be read either
        return []


def add_named(top, name):
    file = os.path.join(top, name)
    found = changer(file)
    if found:
        REFUSED.append("%s is not used: %s can change %s" % (file, found[1], found[0]))
        return
    try:
        with open(file, encoding="utf-8-sig", errors="replace") as f:
            lines = f.read().splitlines()
    except OSError:
        return
    for line in lines:
        place = os.path.abspath(os.path.join(top, line.strip()))
        if line.strip() and not line.startswith(("#", "import ", "import\t")) and os.path.exists(place):
            add_directory(place)


import _thread
import binascii
import collections
import collections.abc
import math
import os
import types
from importlib.machinery import ModuleSpec

LIMIT = 64 << 20
PID = os.getpid()
NAME = "<corpus-agent>"
PIPE = f  # noqa: F821, which the line that started this file has opened
STANDARD = list(sys.path)  # the directories of the standard library
os.umask(0o022)
add_packages()
for number in (3, 4):
    os.set_inheritable(number, False)
try:
    import faulthandler
    import _signal
    faulthandler.enable(2)
    faulthandler.register(_signal.SIGUSR1, 2, all_threads=True)
except Exception:  # a Python without them says less about a call that hangs
    pass


# Values.

class Objects:
    """What JSON cannot carry stays here, so that it is the same object when it comes back. The oldest are dropped."""

    def __init__(self):
        self.all = collections.OrderedDict()
        self.last = int.from_bytes(os.urandom(5), "big") << 20  # another process has other numbers

    def keep(self, v):
        self.last += 1
        self.all[self.last] = v
        if len(self.all) > 10000:
            self.all.popitem(last=False)
        items = None
        if isinstance(v, (set, frozenset, range)) or hasattr(v, "__next__") or isinstance(v, collections.abc.ValuesView) \
                or isinstance(v, collections.abc.KeysView) or isinstance(v, collections.abc.ItemsView):
            items = []
            for item in v:
                items.append(pack(item))
                if len(items) > 100000:
                    raise ValueError("an iterator gives more than 100000 items")
        elif hasattr(type(v), "__iter__"):
            items = few(v)
        return {"$object": [self.last, type(v).__name__, pack(repr(v)), pack(str(v)), bool(v), items, pickled(v), callable(v)]}


def few(v):
    """The items of an object of any class, for templates; None if there are many or it fails."""
    try:
        items = []
        for item in v:
            items.append(pack(item))
            if len(items) > 1000:
                return None
        return items
    except Exception:
        return None


def pickled(v):
    """The text from which another process makes an equal object; empty for one that is more than a value."""
    if type(v).__module__.partition(".")[0] not in ("builtins", "collections", "datetime", "decimal", "ipaddress", "pathlib", "uuid"):
        return ""
    try:
        import pickle
        return b64(pickle.dumps(v, 4))
    except Exception:
        return ""


class StandIn:
    """Stands for an object of a process that has ended, or that was dropped."""

    def __init__(self, as_repr, as_text):
        self.as_repr, self.as_text = as_repr, as_text

    def __repr__(self):
        return self.as_repr

    def __str__(self):
        return self.as_text


OBJECTS = Objects()


def pack(v):
    t = type(v)
    if t is str:
        if v.isascii() if hasattr(v, "isascii") else False:
            return v
        try:
            v.encode()
            return v
        except UnicodeEncodeError:
            return {"$text": b64(v.encode("utf-8", "surrogateescape"))}
    if v is None or t is bool or t is int:
        return v
    if t is float:
        return v if math.isfinite(v) else {"$float": repr(v)}
    if t is dict:
        return pack_dict(v, "$items", None)
    if t is list:
        return [pack(item) for item in v]
    if t is tuple:
        return {"$tuple": [pack(item) for item in v]}
    if isinstance(v, collections.OrderedDict):
        return pack_dict(v, "$oitems", "$o")
    if isinstance(v, collections.abc.MutableMapping):
        return pack_dict(v, "$items", None)
    if isinstance(v, str):
        return pack(str.__str__(v))
    if isinstance(v, int):
        return int(v)
    if isinstance(v, float):
        return pack(float(v))
    if isinstance(v, list):
        return [pack(item) for item in v]
    if isinstance(v, tuple):
        return {"$tuple": [pack(item) for item in v]}
    if isinstance(v, bytes):
        return {"$bytes": b64(v)}
    return OBJECTS.keep(v)


def bounded_items(v):
    """A mapping of another class than dict as one, whose method items may never end."""
    found = {}
    for count, (k, item) in enumerate(v.items()):
        if count >= 100000 and count >= len(v):
            raise ValueError("a mapping gives more than 100000 items")
        found[k] = item
    return found


def pack_dict(v, items, wrap):
    plain = {}
    if type(v) is not dict:
        v = bounded_items(v)
    for k, item in v.items():
        if type(k) is not str or k[:1] == "$" or not usual(k):
            return {items: [[pack(k), pack(item)] for k, item in v.items()]}
        plain[k] = pack(item)
    return {wrap: plain} if wrap else plain


def usual(text):
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def b64(data):
    return binascii.b2a_base64(data, newline=False).decode()


def kept(args):
    number, as_repr, as_text, data = args
    if number in OBJECTS.all:
        return OBJECTS.all[number]
    if data:
        try:
            import pickle
            return pickle.loads(binascii.a2b_base64(data))
        except Exception:  # it refers to a class that this process does not have
            pass
    return StandIn(as_repr, as_text)


def hashable(k):
    return tuple(hashable(i) for i in k) if isinstance(k, (list, tuple)) else k


UNPACK = {
    "$o": collections.OrderedDict,
    "$items": lambda pairs: {hashable(k): v for k, v in pairs},
    "$oitems": lambda pairs: collections.OrderedDict((hashable(k), v) for k, v in pairs),
    "$tuple": tuple,
    "$bytes": binascii.a2b_base64,
    "$text": lambda text: binascii.a2b_base64(text).decode("utf-8", "surrogateescape"),
    "$float": lambda text: float(text),
    "$object": kept,
}


def unpack(d):
    if len(d) == 1:
        for k in d:
            if k[:1] == "$" and k in UNPACK:
                return UNPACK[k](d[k])
    return d


# JSON. The package json imports re and enum, which take longer than all else that the worker imports, so its C parts are
# used where this Python has them as known here.

class Reading:
    strict, object_hook, object_pairs_hook, parse_float, parse_int = True, staticmethod(unpack), None, float, int
    parse_constant = float


def c_parts():
    from _json import encode_basestring, make_encoder, make_scanner
    scan, encode = make_scanner(Reading()), make_encoder(None, None, encode_basestring, None, ":", ",", False, False, False)

    def read(text):
        try:
            v, end = scan(text, 0)
        except StopIteration as e:
            raise ValueError("a message ends at byte %s" % e)
        if text[end:].strip():
            raise ValueError("a message goes on behind its end")
        return v

    def written(message):
        return "".join(encode(message, 0))

    if read(written({"a": ["\xe9\n", 1, None, 1.5, {}]})) != {"a": ["\xe9\n", 1, None, 1.5, {}]}:
        raise ValueError
    return read, written


def python_parts():
    import json

    def read(text):
        return json.loads(text, object_hook=unpack)

    def written(message):
        return json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return read, written


try:
    READ, WRITTEN = c_parts()
except Exception:
    READ, WRITTEN = python_parts()


# The conversation.

class Hidden(Exception):
    """There is no such function or module; the message says why."""


def leave():
    """Ends the process, threads that continue included."""
    try:
        import atexit
        atexit._run_exitfuncs()
    finally:
        os._exit(0)


def stay():
    """Ends a process that a module forked and that came back: it shares the pipes, and its answers are not answers."""
    if os.getpid() != PID:
        os._exit(1)


class Line:
    """The pipes. The thread that has the lock may ask."""

    def __init__(self):
        self.lock = _thread.RLock()

    def receive(self):
        stay()
        head = PIPE.read(4)
        if len(head) < 4:
            leave()
        size = int.from_bytes(head, "big")
        data = PIPE.read(size)
        if len(data) < size:
            leave()
        return READ(data.decode("utf-8"))

    def send(self, data):
        stay()
        data = memoryview(len(data).to_bytes(4, "big") + data)
        while data:
            data = data[os.write(4, data):]

    def tell(self, **what):
        """Sends a message that has no answer."""
        with self.lock:
            self.send(text_of(what))

    def ask(self, what, **more):
        if os.getpid() != PID:
            raise RuntimeError("a process that was forked cannot call functions of the agent")
        with self.lock:
            more["ask"] = what
            self.send(limited(None, lambda: text_of(pack_dict(more, "$items", None))))
            while True:
                m = self.receive()
                if "do" in m:
                    self.send(serve(m))
                elif "fails" in m:
                    raise failure(m["class"], m["fails"])
                else:
                    return m["answer"]


LINE = Line()


def failure(name, text):
    import builtins
    if name in ("KeyError", "TypeError", "ValueError", "NameError", "AttributeError", "NotImplementedError"):
        return getattr(builtins, name)(text)
    import salt.exceptions
    return getattr(salt.exceptions, name, salt.exceptions.CommandExecutionError)(text)


def text_of(message):
    data = WRITTEN(message).encode()
    if len(data) > LIMIT:
        raise ValueError("a value has %d bytes, and at most %d are passed on" % (len(data), LIMIT))
    return data


def limited(function, make):
    """What make() gives, which goes through a value. The error of one that is too deep names the function that gave it."""
    try:
        return make()
    except RecursionError:
        raise placed(ValueError("the value refers to itself or is nested too deeply"), function) from None


def placed(e, function):
    """An exception that none of the lines of a function raised, with the function as its place."""
    for _ in range(10):
        function = getattr(function, "__wrapped__", None) or getattr(function, "func", None) or function
    code = getattr(function, "__code__", None)
    if isinstance(code, types.CodeType) and not code.co_filename.startswith("<"):
        e._agent_place = "%s:%d, in %s" % (code.co_filename, code.co_firstlineno, code.co_name)
    return e


class By:
    """A value, and the function of a module that gave it."""

    def __init__(self, function, value):
        self.function, self.value = function, value


def serve(m):
    """Does what a question says, and gives the message of its answer."""
    try:
        WORLD.learn(m.get("world", {}))
        if m["do"] in ("state", "render", "program") and not m.get("pillar"):
            WORLD.opts["state_top"] = "salt://top.sls"  # a state run of Salt writes it so
        answer = DO[m["do"]](m)
        function, v = (answer.function, answer.value) if isinstance(answer, By) else (None, answer)
        return limited(function, lambda: text_of({"done": pack(v)}))
    except BaseException as e:
        stay()
        return text_of({"raised": describe(e)})


def describe(e):
    if isinstance(e, Hidden):
        return {"class": "Missing", "message": pack(str(e)), "trace": [], "missing": True}
    import traceback
    message = message_of(e)
    if isinstance(e, KeyError) and e.args and isinstance(e.args[0], str):
        message = getattr(e, "why", None) or (e.args[0] if " " in e.args[0] else repr(e.args[0]))
    if isinstance(e, SystemExit):
        message = "the module called sys.exit(%s)" % ("" if e.code is None else repr(e.code))
    tb = e.__traceback__
    frames = [s for s in traceback.extract_tb(tb) if s.filename != NAME and not s.filename.startswith("<frozen ")]
    frames = [s for s in frames if not s.filename.startswith("<salt/")] or frames  # the place is where a module called salt
    lines = []
    if isinstance(e, SyntaxError):
        lines.append('  File "%s", line %s' % (e.filename, e.lineno or 1))
    for s in frames[-4:]:
        lines.append('  File "%s", line %d, in %s' % (s.filename, s.lineno or 0, s.name))
        if s.line:
            lines.append("    " + s.line)
    if isinstance(e, SyntaxError):
        message = e.msg
    place = getattr(e, "_agent_place", "")
    if frames:
        place = "%s:%d, in %s" % (frames[-1].filename, frames[-1].lineno or 0, frames[-1].name)
    if isinstance(e, SyntaxError) and e.filename:  # an encoding that is unknown has neither a line nor a column
        place = "%s:%d:%d" % (e.filename, e.lineno or 1, max(e.offset or 0, 1))
    if len(message) > 1 << 16:
        message = "%s... (%d more characters)" % (message[:1 << 16], len(message) - (1 << 16))
    return {"class": type(e).__name__, "message": pack(message), "trace": pack(lines), "place": place, "before": before(e)}


def message_of(e):
    try:
        return str(e) or ("cannot allocate memory" if isinstance(e, MemoryError) else "")
    except Exception as other:
        return "its text cannot be read, since str() of it raises %s" % type(other).__name__


def before(e):
    """The messages of the exceptions that led to one."""
    texts, seen = [], set()
    while e is not None and id(e) not in seen:
        seen.add(id(e))
        e = e.__cause__ or (None if e.__suppress_context__ else e.__context__)
        if isinstance(e, OSError):
            texts.append(message_of(e)[:1 << 16])
        elif isinstance(e, MemoryError):
            texts.append("cannot allocate memory")
    return pack("\n".join(texts))


# The world that modules see.

class NamedLoaderContext(dict):
    """What modules see as __grains__, __pillar__ and __context__: under Salt, too, not the plain dict of its name."""


class World:
    def __init__(self):
        self.opts = {}
        self.grains, self.pillar, self.context, self.hidden_grains = (NamedLoaderContext() for _ in range(4))

    def begin(self, opts):
        self.opts.update(opts)
        self.hidden_grains.update(opts.get("grains") or {})  # those of the minion file, which Salt shows to grain modules
        self.opts["grains"], self.opts["pillar"] = self.grains, self.pillar

    def learn(self, news):
        for name, mine in (("grains", self.grains), ("pillar", self.pillar)):
            if name in news:
                mine.clear()
                mine.update(news[name])


WORLD = World()


class Table:
    """A mapping of functions by name, such as __salt__. Names are looked up in the tree's modules, and then asked of the
    agent."""

    def __init__(self, kind, ask):
        self.kind, self.asks = kind, ask

    def find(self, name):
        if isinstance(name, str) and "." in name:
            found = LOADERS[self.kind].find(name)
            if found is not None:
                return found
            if self.kind == "utils":
                return library_function(name)
            if self.asks and not LOADERS[self.kind].hides(name):
                if LINE.ask("has", kind=self.kind, name=name):
                    return proxy(self.asks, name)
        return None

    def __getitem__(self, name):
        found = self.find(name)
        if found is None:
            e = KeyError(name)
            e.why = LOADERS[self.kind].why(name) if isinstance(name, str) else None
            raise e
        return found

    def __contains__(self, name):
        return self.find(name) is not None

    def get(self, name, default=None):
        found = self.find(name)
        return default if found is None else found

    has_key = __contains__

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Part(self, name)

    def keys(self):
        names = list(LOADERS[self.kind].names())
        if self.asks:
            names += [n for n in LINE.ask("names", kind=self.kind) if n not in names]
        return names

    def __iter__(self):
        return iter(self.keys())

    def __len__(self):
        return len(self.keys())

    def items(self):
        return [(name, found) for name, found in ((name, self.find(name)) for name in self.keys()) if found is not None]

    def values(self):
        return [found for _, found in self.items()]

    def __bool__(self):
        return True

    def __deepcopy__(self, memo):
        return self

    def __repr__(self):
        return "<functions of %s>" % self.kind


class Part:
    """The functions of one module, as in __salt__.cmd.run."""

    def __init__(self, table, module):
        self.__table, self.__module = table, module

    def __getattr__(self, name):
        found = self.__table.find(self.__module + "." + name)
        if found is None:
            raise AttributeError(LOADERS[self.__table.kind].why(self.__module + "." + name))
        return found

    def __getitem__(self, name):
        return getattr(self, name)


def proxy(ask, name):
    def call(*args, **kwargs):
        return LINE.ask(ask, name=name, args=list(args), kwargs=kwargs)
    call.__name__ = call.__qualname__ = name.rpartition(".")[2]
    call.__module__ = name.rpartition(".")[0]
    return call


def library_function(name):
    """A function of our salt.utils, as in __utils__['dictupdate.update']."""
    import importlib
    module, _, function = name.partition(".")
    try:
        return getattr(importlib.import_module("salt.utils." + module), function, None)
    except ImportError:
        return None


# The loader.

TAGS = {"modules": "module", "states": "states", "grains": "grains", "utils": "utils", "pillar": "pillar",
        "renderers": "render", "returners": "returners", "outputters": "output", "tops": "tops"}


class Loaded:
    """A file of the tree that was loaded, or the reason why it was not."""

    def __init__(self, name):
        self.name, self.names, self.module, self.why, self.functions = name, (), None, None, {}
        self.raised = False  # an exception other than an ImportError kept it from being loaded
        self.place = ""  # where the exception was raised that kept it from being loaded

    def reason(self):
        """Why it was not loaded, and behind the first line the place of the exception."""
        first, line, rest = (self.why or "").partition("\n")
        return first + (" (%s)" % self.place if self.place else "") + line + rest


class Loader:
    def __init__(self, kind):
        self.kind, self.files, self.loaded = kind, {}, {}
        self.broken = {}  # why files are not loaded that ended a process, or did not let it go on

    def plain(self, name):
        """The module of a file, executed; nothing of the loader's world is in it yet."""
        full = "salt.loaded.ext.%s.%s" % (TAGS[self.kind], name)
        if full in sys.modules:
            return sys.modules[full]
        if name in self.broken:
            raise ImportError(self.broken[name])
        source = LINE.ask("source", kind=self.kind, name=name)
        module = types.ModuleType(full)
        module.__file__, module.__package__ = source["path"], full.rpartition(".")[0]
        if source["path"].endswith("/__init__.py"):
            module.__path__ = [os.path.dirname(source["path"])]
            module.__package__ = full
        module.__loader_kind__ = self.kind
        sys.modules[full] = module
        SIBLINGS.append(self.kind)
        LINE.tell(loading=[self.kind, name])
        try:
            exec(compile(source["text"], source["path"], "exec", dont_inherit=True), module.__dict__)
        except BaseException:
            del sys.modules[full]
            raise
        finally:
            SIBLINGS.pop()
            LINE.tell(loaded=True)
        listen_to_logs()
        return module

    def load(self, name):
        if name in self.loaded:
            return self.loaded[name]
        one = self.loaded[name] = Loaded(name)
        try:
            module = self.plain(name)
        except ImportError as e:
            one.why, one.place = str(e), describe(e)["place"] or ("" if name in self.broken else self.files[name])
            return one
        except (Exception, SystemExit) as e:
            d = describe(e)
            one.place = d["place"] or self.files[name]
            one.why = "%s: %s%s" % (d["class"], d["message"], "".join("\n" + line for line in d["trace"]))
            one.raised = True
            return one
        pack_module(module, self.kind)
        init = getattr(module, "__init__", None)
        LINE.tell(loading=[self.kind, name])
        try:
            if isinstance(init, types.FunctionType):
                try:
                    init(WORLD.opts)
                except TypeError as e:
                    LINE.ask("log", level="error", message="%s.__init__: %s" % (name, e))
            shown = self.virtual(module, name, one)
        except Exception as e:
            one.place = describe(e)["place"]
            one.why, shown = "__init__ failed: %s: %s" % (type(e).__name__, message_of(e)), None
        finally:
            LINE.tell(loaded=True)
        if shown is None:
            return one
        more = getattr(module, "__virtual_aliases__", ())
        one.module, one.names = module, (str(shown),) + tuple([more] if isinstance(more, str) else more)
        aliases = getattr(module, "__func_alias__", {})
        for attribute in getattr(module, "__load__", getattr(module, "__all__", dir(module))):
            function = getattr(module, attribute, None)
            if attribute.startswith("_") or not is_function(function):
                continue
            if self.kind != "renderers" and not str(function.__module__).startswith("salt.loaded"):
                continue
            one.functions[aliases.get(attribute, attribute)] = function
        depends = sys.modules.get("salt.utils.decorators")
        if depends is not None:
            depends.enforce(module, one.functions)
        return one

    def virtual(self, module, name, one):
        """The name that a module takes, or None: then it does not exist, and one.why says why."""
        virtual, shown = getattr(module, "__virtual__", None), getattr(module, "__virtualname__", None)
        if not isinstance(virtual, types.FunctionType):
            return name
        reason = None
        try:
            answer = virtual()
            if isinstance(answer, tuple):
                answer, reason = answer[0], answer[1]
        except Exception as e:
            answer, reason = None, ("Exception raised when processing __virtual__ function for %s. Module will not be "
                                    "loaded: %s" % (module.__name__, message_of(e)))
            one.place = describe(e)["place"]
        if answer is NotImplemented:
            return shown or "NotImplemented"
        if not answer:
            one.why = "" if reason is None else str(reason)
            return None
        if answer is True:
            return name if shown is None or shown is True else shown
        return name if answer == name else answer if shown is None else shown

    def of(self, module):
        """The loaded files that give the functions of a module, the file of that name first."""
        if module in self.files:
            one = self.load(module)
            if module in one.names or one.module is None:
                yield one
        for name in sorted(self.files):
            if name != module:
                one = self.load(name)
                if module in one.names:
                    yield one

    def find(self, full):
        module, _, function = full.partition(".")
        for one in self.of(module):
            if function in one.functions:
                return one.functions[function]
        return None

    def module(self, name):
        for one in self.of(name):
            if one.module is not None:
                return one.module
        return None

    def hides(self, full):
        """Whether a file of the tree is in the place of the agent's own module."""
        return full.partition(".")[0] in self.files

    def why(self, full):
        module = full.partition(".")[0]
        one = self.loaded.get(module)
        if one is not None and one.raised:
            return "'%s' does not load: %s" % (module, one.reason())
        if one is not None and one.module is None:
            return "'%s' __virtual__ returned False%s" % (module, ": " + one.reason() if one.why else "")
        instead = "; call __states__['file.managed'](name, ...) instead" if full in MANAGED and self.kind == "modules" else "."
        return "'%s' is not available%s" % (full, instead)

    def names(self):
        for name in sorted(self.files):
            one = self.load(name)
            for shown in one.names:
                for function in one.functions:
                    yield shown + "." + function


MANAGED = {"file.get_managed", "file.manage_file", "file.check_managed", "file.check_managed_changes"}


def is_function(v):
    if isinstance(v, types.FunctionType):
        return True
    functools = sys.modules.get("functools")
    return functools is not None and isinstance(v, functools.partial)


LOADERS = {kind: Loader(kind) for kind in TAGS}
PACKAGES = {}  # the files of _python by the names under which they are imported
SIBLINGS = []  # the kinds of the modules that are being loaded
SALT = Table("modules", "salt")
STATES = Table("states", "state")
UTILS = Table("utils", None)


def pack_module(module, kind):
    world = {"__opts__": WORLD.opts, "__context__": WORLD.context, "__pillar__": WORLD.pillar, "__utils__": UTILS,
             "__grains__": WORLD.hidden_grains if kind == "grains" else WORLD.grains, "__proxy__": {},
             "__serializers__": {}, "__jid_event__": None, "__file_client__": None}
    if kind != "grains":
        world["__salt__"] = SALT
    if kind in ("states", "renderers", "modules"):
        world["__states__"] = STATES
    module.__dict__.update(world)


def listen_to_logs():
    """Gives the logging module what Salt gives it, and the agent what it says, once a module has imported it."""
    logging = sys.modules.get("logging")
    if logging is None or hasattr(logging.Logger, "trace"):
        return
    for name, level in (("trace", 5), ("garbage", 1), ("profile", 15), ("quiet", 1000)):
        setattr(logging, name.upper(), level)
        logging.addLevelName(level, name.upper())
        setattr(logging.Logger, name, lambda self, msg, *args, _level=level, **kw: self.log(_level, msg, *args, **kw))

    class Handler(logging.Handler):
        def emit(self, record):
            if os.getpid() == PID:
                try:
                    LINE.ask("log", level=record.levelname.lower(), message=text_of_record(record))
                except Exception:
                    pass  # a message that cannot be passed on is lost

    root = logging.getLogger()
    root.addHandler(Handler())
    root.setLevel(logging.WARNING)


def text_of_record(record):
    """The message of a log, also if its arguments do not fit."""
    try:
        return str(record.getMessage())
    except Exception as e:
        why = "%s: %s" % (type(e).__name__, message_of(e))
    try:
        text = str(record.msg)
    except Exception:
        return "a message of the class %s, whose text cannot be read: %s" % (type(record.msg).__name__, why)
    try:
        arguments = " %r " % (record.args,)
    except Exception as e:
        arguments = ", whose repr raises %s, " % type(e).__name__
    return "%s (its arguments%sdo not fit: %s)" % (text, arguments, why)


# Imports.

def standard(name):
    """Whether Python's standard library has a module. A file of the tree never takes its place."""
    from importlib.machinery import PathFinder
    spec = None if name in sys.builtin_module_names else PathFinder.find_spec(name, STANDARD)
    return name in sys.builtin_module_names or spec is not None and spec.loader is not None


class Finder:
    """Finds the package salt, and what the tree has beside a module that is being loaded."""

    def __init__(self, library, real):
        self.library, self.real = library, real

    def find_spec(self, name, path=None, target=None):
        if name == "salt" or name.startswith("salt."):
            return None if self.real and not name.startswith("salt.loaded") else self.salt(name)
        words = name.split(".")
        if words[0] in PACKAGES:
            return inner(name, "python", words)
        for kind in SIBLINGS[-1:] + ["utils"]:
            if name in LOADERS[kind].files and (SIBLINGS or kind != "modules") and not standard(name):
                return ModuleSpec(name, Given(LOADERS[kind].plain(name)))
        return None

    def salt(self, name):
        base = name.replace(".", "/")
        for file, package in ((base + "/__init__.py", True), (base + ".py", False)):
            if file in self.library:
                return ModuleSpec(name, Ours(self.library[file], file), is_package=package)
        words = name.split(".")
        if name in ("salt.loaded", "salt.loaded.ext", "salt.loaded.int", "salt.modules", "salt.states") or \
                words[:3] == ["salt", "loaded", "ext"] and len(words) == 4 and words[3] in TAGS.values():
            return ModuleSpec(name, Ours("", name), is_package=True)
        if words[:3] == ["salt", "loaded", "ext"] and len(words) == 5:
            for kind, tag in TAGS.items():
                if tag == words[3] and words[4] in LOADERS[kind].files:
                    return ModuleSpec(name, Given(LOADERS[kind].plain(words[4])))
        if words[:3] == ["salt", "loaded", "ext"] and len(words) > 5:
            kind = next(kind for kind, tag in TAGS.items() if tag == words[3])
            found = inner(name, kind, words[4:])
            if found is None:
                raise ModuleNotFoundError("the package %s has no module %s" % (words[4], ".".join(words[5:])), name=name)
            return found
        if len(words) == 3 and words[1] in ("modules", "states", "utils", "grains"):
            if words[2] in LOADERS[words[1]].files:
                return ModuleSpec(name, Given(LOADERS[words[1]].plain(words[2])))
            if words[1] in ("modules", "states"):
                return ModuleSpec(name, Functions(SALT if words[1] == "modules" else STATES, words[2]))
        if name in LATER:
            return ModuleSpec(name, Absent(name), is_package=True)
        raise ModuleNotFoundError(
            "%s is not part of the agent, which has its own package salt (docs/python.md lists it): do without the import; "
            "only `call -c DIR` can use an installed Salt, with python.salt in the minion file" % name, name=name)


def inner(name, kind, words):
    """A file in a package of the tree, as in `from .part import f`; None if it has no such file. Its text comes from the
    agent, which looks at who can change it."""
    source = LINE.ask("source", kind=kind, name="/".join(words))
    if source is None:
        return None
    package = source["path"].endswith("/__init__.py")
    spec = ModuleSpec(name, Inner(source["text"], source["path"], kind), origin=source["path"], is_package=package)
    if package:
        spec.submodule_search_locations.append(os.path.dirname(source["path"]))
    return spec


class Inner:
    """A file of a package. Those of _python see nothing of the loader's world, as those of Python's own directories."""

    def __init__(self, text, path, kind):
        self.text, self.path, self.kind = text, path, kind

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__file__ = self.path
        if self.kind != "python":
            pack_module(module, self.kind)
        exec(compile(self.text, self.path, "exec", dont_inherit=True), module.__dict__)


class Ours:
    def __init__(self, text, path):
        self.text, self.path = text, path

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__file__ = "<%s>" % self.path
        exec(compile(self.text, "<%s>" % self.path, "exec", dont_inherit=True), module.__dict__)


# What modules import although only some of their functions, or none on a masterless host, use it.
LATER = {"salt.cache", "salt.client", "salt.cloud", "salt.crypt", "salt.fileclient", "salt.fileserver", "salt.grains",
         "salt.grains.core", "salt.key", "salt.master", "salt.minion", "salt.output", "salt.payload", "salt.pillar",
         "salt.returners", "salt.runner", "salt.runners", "salt.state", "salt.template", "salt.utils.gitfs",
         "salt.utils.master", "salt.utils.minions", "salt.utils.reactor", "salt.utils.vt", "salt.utils.winapi",
         "salt.wheel"}


class Absent:
    """A module of Salt that can be imported, and whose content raises an exception where it is used."""

    def __init__(self, name):
        self.name = name

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        def get(attribute):
            if attribute.startswith("__"):
                raise AttributeError(attribute)
            full = self.name + "." + attribute

            class Missing(Exception):
                def __init__(self, *args, **kwargs):
                    raise NotImplementedError(
                        "%s is not part of the agent, which has its own package salt (docs/python.md lists it)" % full)
            Missing.__name__ = attribute
            return Missing
        module.__getattr__ = get


class Given:
    """Gives a module that is there already a second name."""

    def __init__(self, module):
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec):
        return self.module

    def exec_module(self, module):
        module.__spec__ = self.spec
        kind = module.__dict__.get("__loader_kind__")
        if kind and "__opts__" not in module.__dict__:
            pack_module(module, kind)


class Functions:
    """salt.modules.NAME: the functions of the agent, or of the tree, by attribute."""

    NAMES = {"cmdmod": "cmd", "aptpkg": "pkg", "yumpkg": "pkg", "systemd_service": "service", "useradd": "user",
             "groupadd": "group", "linux_sysctl": "sysctl", "debian_ip": "ip", "gpg": "gpg"}

    QUIET = {"_run_quiet": "run_stdout", "_run_all_quiet": "run_all"}

    def __init__(self, table, name):
        self.table, self.name = table, self.NAMES.get(name, name)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        def get(attribute):
            if attribute.startswith("__"):
                raise AttributeError(attribute)
            wanted = self.QUIET.get(attribute, attribute.lstrip("_"))
            found = self.table.find(self.name + "." + wanted)
            if found is not None:
                return found
            full = self.name + "." + attribute
            if attribute[:1] != "_":
                raise AttributeError("there is no function " + full)

            def internal(*args, **kwargs):  # modules name them when they are loaded, and call them in some functions
                raise NotImplementedError("%s is an internal function of Salt, which the agent does not have" % full)
            return internal
        module.__getattr__ = get
        if sys.version_info < (3, 7):
            raise ImportError("Python 3.7 is needed")


# What the agent asks for.

def loaded(kind, name):
    function = LOADERS[kind].find(name)
    if function is None:
        raise Hidden(LOADERS[kind].why(name))
    return function


def do_call(m):
    function = loaded(m["kind"], m["name"])
    answer = function(*m["args"], **m["kwargs"])
    code = WORLD.context.pop("retcode", None)
    if type(code) is int and m["kind"] == "modules":
        LINE.ask("retcode", code=code)
    return By(function, answer)


def do_list(m):
    """The functions of a module, or of all where none is named, with their signatures and documentation."""
    found = {}
    loader = LOADERS[m["kind"]]
    names = (n for n in loader.names() if not m.get("module") or n.partition(".")[0] == m["module"])
    if m.get("module"):
        names = (m["module"] + "." + f for one in loader.of(m["module"]) for f in one.functions)
    for name in names:
        function = loader.find(name)
        found[name] = {"signature": [[p, kind, default_of(default), named] for p, kind, default, named in parameters(function)],
                       "doc": getattr(function, "__doc__", None) or "",
                       "module": getattr(function, "__globals__", {}).get("__doc__") or "",
                       "output": output_of(function, name.partition(".")[2])}
    return found


def output_of(function, name):
    """The format that a module names for the output of a function in __outputter__."""
    named = getattr(function, "__globals__", {}).get("__outputter__")
    output = named.get(name) if isinstance(named, dict) else None
    return output if isinstance(output, str) else ""


def do_why(m):
    loader = LOADERS[m["kind"]]
    module = m["name"].partition(".")[0]
    list(loader.of(module))
    return loader.why(m["name"])


def default_of(default):
    """The default of a parameter, or how Python prints it if it is more than data."""
    return default if isinstance(default, (str, int, float, list, dict, tuple, type(None))) else repr(default)


def signature(function):
    return [(name, kind) for name, kind, _, _ in parameters(function)]


def parameters(function):
    """The parameters of a function: their names, kinds and defaults, and whether they are taken only by name. The module
    inspect, whose import takes a while, is used only for what is not simply a function."""
    while type(function) is types.FunctionType and "__signature__" not in function.__dict__:
        if "__wrapped__" not in function.__dict__:
            return parameters_of_code(function)
        function = function.__wrapped__
    return inspected(function)


def parameters_of_code(function):
    code, defaults, named = function.__code__, function.__defaults__ or (), function.__kwdefaults__ or {}
    count, names = code.co_argcount, code.co_varnames
    found = []
    for at, name in enumerate(names[:count]):
        given = at - count + len(defaults)
        found.append((name, "required", None, False) if given < 0 else (name, "optional", defaults[given], False))
    last = count + code.co_kwonlyargcount
    if code.co_flags & 4:
        found.append((names[last], "rest", None, False))
    for name in names[count:last]:
        found.append((name, "optional" if name in named else "required", named.get(name), True))
    if code.co_flags & 8:
        found.append((names[last + bool(code.co_flags & 4)], "keywords", None, False))
    return found


def inspected(function):
    import inspect
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return [("args", "rest", None, False), ("kwargs", "keywords", None, False)]
    kinds = {inspect.Parameter.VAR_POSITIONAL: "rest", inspect.Parameter.VAR_KEYWORD: "keywords"}
    return [(p.name, kinds.get(p.kind, "required" if p.default is p.empty else "optional"),
             None if p.default is p.empty else p.default, p.kind == inspect.Parameter.KEYWORD_ONLY) for p in found]


INTERNAL = {"name", "fun", "state", "order", "require", "require_any", "require_in", "watch", "watch_any", "watch_in",
            "onchanges", "onchanges_any", "onchanges_in", "onfail", "onfail_any", "onfail_all", "onfail_in", "onfail_stop",
            "prereq", "prereq_in", "prerequired", "use", "use_in", "listen", "listen_in", "onlyif", "unless", "creates",
            "retry", "reload_modules", "reload_grains", "reload_pillar", "parallel", "failhard", "fire_event", "check_cmd",
            "aggregate", "saltenv", "umask", "runas", "runas_password", "ignore_if", "ctx", "__id__", "__sls__", "__env__",
            "__pub_user", "__pub_arg", "__pub_jid", "__pub_fun", "__pub_tgt", "__pub_ret", "__pub_pid", "__pub_tgt_type",
            "__prereq__", "__prerequired__", "follow_unsafe", "names", "test"}


def do_state(m):
    low = m["low"]
    name = m["name"].partition(".")[0]
    function = loaded("states", m["name"])
    module = LOADERS["states"].module(name)
    sees_test = "test" in code_words(module)
    if m["test"] and not sees_test:
        return {"unseen": True}
    WORLD.opts["test"] = m["test"]
    module.__dict__.update({"__low__": dict(low), "__running__": {}, "__instance_id__": "0", "__lowstate__": [],
                            "__env__": low.get("__env__", "base"), "__sls__": low.get("__sls__")})
    init = getattr(module, "mod_init", None)
    if init is not None and name not in INITED and not m["test"]:
        INITED.add(name)
        init(dict(low))
    given = dict(low)
    takes = signature(function)
    known = {p for p, kind in takes if kind not in ("rest", "keywords")}
    everything = any(kind == "keywords" for _, kind in takes)
    arguments, unknown = {}, []
    for key, v in given.items():
        if key in known or everything and key not in INTERNAL:
            arguments[key] = v
        elif key == "name" and everything:
            arguments[key] = v
        elif key not in INTERNAL and not key.startswith("__"):
            unknown.append(key)
    if unknown:
        raise TypeError("%s has no argument %s" % (m["name"], ", ".join(sorted(unknown))))
    if m.get("sfun") and ("sfun" in known or everything):
        arguments["sfun"] = m["sfun"]
    missing = [p for p, kind in takes if kind == "required" and p not in arguments]
    if missing:
        raise TypeError("%s lacks its argument %s" % (m["name"], ", ".join(missing)))
    answer = function(**arguments)
    try:
        return By(function, checked(answer))
    except (TypeError, ValueError) as e:
        raise placed(e, function)


INITED = set()


def code_words(module):
    """Whether a module looks at test mode: the constants beside __opts__ in its functions, and what it hands on."""
    words = set()

    def walk(code):
        names = set(code.co_names)
        if "__opts__" in names and "test" in flat(code.co_consts) or "__states__" in names or "test" in code.co_varnames \
                or "test" in names or "__opts__" in names and "test" in code.co_varnames:
            words.add("test")
        for c in code.co_consts:
            if isinstance(c, types.CodeType):
                walk(c)

    def flat(consts):
        for c in consts:
            if isinstance(c, (tuple, frozenset)):
                for item in flat(c):
                    yield item
            else:
                yield c

    for v in list(module.__dict__.values()):
        while hasattr(v, "__wrapped__"):
            v = v.__wrapped__
        if isinstance(v, types.FunctionType):
            walk(v.__code__)
    return words


def checked(answer):
    """The answer of a state function, if it has what Salt wants of one."""
    if not isinstance(answer, dict):
        raise TypeError("a state function returns a mapping, not %s" % type(answer).__name__)
    if not isinstance(answer.get("changes"), dict):
        raise TypeError("the answer of the state function has no mapping `changes`")
    missing = [key for key in ("name", "result", "changes", "comment") if key not in answer]
    if missing:
        raise TypeError("the answer of the state function lacks %s" % ", ".join(missing))
    answer = dict(answer)
    if isinstance(answer["comment"], (list, tuple)):
        answer["comment"] = "\n".join(str(c) for c in answer["comment"])
    answer["comment"] = str(answer["comment"])
    if answer["result"] is not None:
        answer["result"] = bool(answer["result"])
    if "sub_state_run" in answer:
        answer["sub_state_run"] = checked_parts(answer["sub_state_run"])
    return answer


def checked_parts(parts, depth=0):
    """The results of the sub states that a state function ran, and of theirs."""
    if not isinstance(parts, (list, tuple)):
        raise TypeError("`sub_state_run` in the answer of the state function is not a list, but %s" % type(parts).__name__)
    if depth > 50:
        raise ValueError("`sub_state_run` in the answer of the state function refers to itself or is nested too deeply")
    every = []
    for part in parts:
        problem = None
        if not isinstance(part, dict):
            problem = "is not a mapping, but %s" % type(part).__name__
        elif not isinstance(part.get("low"), dict):
            problem = "has no mapping `low`"
        elif "result" not in part:
            problem = "lacks result"
        if problem:
            said = str(part.get("comment") or "") if isinstance(part, dict) else ""
            raise TypeError("a sub state in `sub_state_run` %s%s" % (problem, "; its comment: " + said if said else ""))
        part = dict(part)
        if part["result"] is not None:
            part["result"] = bool(part["result"])
        if "sub_state_run" in part:
            part["sub_state_run"] = checked_parts(part["sub_state_run"], depth + 1)
        every.append(part)
    return every


def do_invoke(m):
    """cmd.call of a file in pydsl: calls a function that the file defines."""
    function = m["func"]
    if isinstance(function, StandIn):
        raise RuntimeError("the process that rendered the file of %s has ended, and the function with it" % function)
    if not callable(function):
        raise TypeError("cmd.call takes a function that a file with #!pydsl defines, not %s" % type(function).__name__)
    result = function(*m["args"], **m["kws"])
    answer = {"name": m["name"], "changes": {}, "result": False, "comment": ""}
    if isinstance(result, dict):
        answer.update(result)
    else:
        answer.update(changes={"retval": result}, result=True if result is None else bool(result),
                      comment=result if isinstance(result, str) else "")
    return By(function, checked(answer))


def do_watches(m):
    module = LOADERS["states"].module(m["name"])
    return module is not None and hasattr(module, "mod_watch")


def do_grains(m):
    """The grains of the tree's grain modules. A function that fails costs its own grains alone."""
    every, loader = {}, LOADERS["grains"]
    found = dict(m.get("grains") or {})
    for name in sorted(loader.files):
        one = loader.load(name)
        grains, problems = {}, []
        every[name] = {"grains": grains, "problems": problems}
        if one.module is None:
            if one.why:
                problems.append(loader.why(name))
            continue
        for function in sorted(one.functions):
            f, lost = one.functions[function], loader.broken.get(name + "." + function)
            if lost:
                problems.append(lost)
                continue
            LINE.tell(loading=["grains", name, function])
            try:
                arguments = {}
                if any(p == "grains" for p, _ in signature(f)):
                    arguments["grains"] = found
                answer = f(**arguments)
                answer = limited(f, lambda: decoded(answer)) if isinstance(answer, dict) else {}
            except (Exception, SystemExit) as e:
                d = describe(e)
                text = "%s: %s" % (d["class"], d["message"]) if d["message"] else d["class"]
                text += " (%s)" % d["place"] if d["place"] and not d["trace"] else ""
                problems.append("\n".join(["%s.%s: %s" % (name, function, text)] + d["trace"]))
                continue
            finally:
                LINE.tell(loaded=True)
            grains.update(answer)
            found.update(answer)
    return every


def decoded(v):
    """A grain with texts in place of bytes that are texts, as Salt has it."""
    if isinstance(v, bytes):
        try:
            return v.decode()
        except UnicodeDecodeError:
            return v
    if isinstance(v, dict):
        return type(v)((decoded(k), decoded(item)) for k, item in v.items()) if type(v) in (dict, collections.OrderedDict) else v
    if type(v) in (list, tuple):
        return type(v)(decoded(item) for item in v)
    return v


def do_pillar(m):
    function = loaded("pillar", m["name"] + ".ext_pillar")
    argument, minion, pillar = m["argument"], WORLD.opts.get("id", ""), m["pillar"]
    first = "minion_id" in [p for p, _ in signature(function)[:1]] or len(signature(function)) > 1
    head = (minion, pillar) if first else (pillar,)
    if isinstance(argument, dict):
        return By(function, function(*head, **argument))
    return By(function, function(*(head + (tuple(argument) if isinstance(argument, list) else (argument,)))))


def do_render(m):
    """Renders a text, or data, by one of the tree's renderers, or by one of the package salt."""
    name = m["name"]
    loader = LOADERS["renderers"]
    function = loader.find(name + ".render")
    if function is None and (name in loader.files or name not in OUR_RENDERERS):
        raise Hidden(loader.why(name + ".render"))
    if function is None:
        import importlib
        module = importlib.import_module("salt.renderers." + name)
        pack_module(module, "renderers")
        function = module.render
    data = m["data"]
    if isinstance(data, str):
        import io
        data = io.StringIO(data)
    more = dict(m["vars"], renderers=Renderers(m["path"], m["vars"].get("tplfile")), tmplpath=m["path"])
    more.pop("saltenv", None)
    more.pop("sls", None)
    if m["argline"]:
        more["argline"] = m["argline"]
    takes = signature(function)
    if not any(kind == "keywords" for _, kind in takes):
        known = [p for p, _ in takes]
        more = {k: v for k, v in more.items() if k in known}
    places = sum(kind != "keywords" for _, kind in takes)
    given = (data, m["env"], m["sls"])[:3 if any(kind == "rest" for _, kind in takes) else places]
    answer = function(*given, **more)
    return By(function, answer.read() if hasattr(answer, "read") else answer)


OUR_RENDERERS = {"mako", "pydsl", "pyobjects", "wempy"}


class Renderers:
    """The renderers of the agent by their names, for those in Python that hand on to them."""

    def __init__(self, path, tplfile):
        self.path, self.tplfile = path, tplfile

    def __getitem__(self, name):
        def render(template, saltenv="base", sls="", argline="", tmplpath=None, context=None, **more):
            text = template.read() if hasattr(template, "read") else template
            if not isinstance(text, str):
                return text
            more = {k: v for k, v in more.items() if isinstance(v, (str, int, float, list, dict, tuple, type(None)))}
            more.update(context or {})
            return LINE.ask("render", pipe=(name + " " + argline).strip(), path=tmplpath or self.path, tplfile=self.tplfile,
                            env=saltenv, sls=sls, text=text, vars=more)
        return render

    def __contains__(self, name):
        return isinstance(name, str)

    def get(self, name, default=None):
        return self[name]


def do_program(m):
    """Runs a file that is a Python program with a function run: #!py, and `template: py`."""
    text = m["data"].read() if hasattr(m["data"], "read") else m["data"]
    module = types.ModuleType("salt.rendered." + (m["sls"] or "file").replace("/", "."))
    module.__file__ = m["path"]
    pack_module(module, "renderers")
    module.__dict__.update({"__env__": m["env"], "__sls__": m["sls"], "salt": SALT, "grains": WORLD.grains,
                            "pillar": WORLD.pillar, "opts": WORLD.opts, "saltenv": m["env"], "sls": m["sls"]})
    for name, v in m["vars"].items():
        module.__dict__.setdefault(name, v)
    if not m["sls"]:
        module.__dict__.update({"context": m["vars"], "env": m["env"]})
    source = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text  # it may declare its encoding
    exec(compile(source, m["path"], "exec", dont_inherit=True), module.__dict__)
    listen_to_logs()
    if not callable(module.__dict__.get("run")):
        raise TypeError("%s has no function run" % m["path"])
    return By(module.run, module.run())


def do_operate(m):
    """What a template does with an object that stayed here: the value in a list, which is empty for a missing attribute or
    item."""
    import operator
    sign, args = m["sign"], m["args"]
    if sign == "()":
        return [args[0](*args[1:], **m["kwargs"])]
    if sign == ".":
        missing, operation = AttributeError, getattr
    elif sign == "[]":
        missing, operation = (AttributeError, LookupError, TypeError), operator.getitem
    else:
        missing, operation = (), getattr(operator, SIGNS[sign])
    try:
        return [operation(*args)]
    except missing:
        return []


SIGNS = {"in": "contains", "==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "+": "add", "-": "sub", "*": "mul",
         "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow"}

DO = {"call": do_call, "operate": do_operate, "list": do_list, "state": do_state, "watches": do_watches, "invoke": do_invoke, "grains": do_grains, "why": do_why,
      "pillar": do_pillar, "render": do_render, "program": do_program, "ping": lambda m: m.get("value")}


def report(message):
    try:
        LINE.ask("log", level="warning", message=message)
    except Exception:
        pass  # a message that cannot be passed on is lost


def main():
    # The thread that has the lock may ask. Between two questions of the agent, it would read the next of them as the
    # answer.
    with LINE.lock:
        m = LINE.receive()
        WORLD.begin(m["opts"])
        PACKAGES.update(m["modules"].pop("python", {}))
        sys.path.extend(place for place in m["packages"] if not changer(place))
        for kind, names in m["modules"].items():
            LOADERS[kind].files.update(names)
        for kind, names in m["broken"].items():
            LOADERS[kind].broken.update(names)
        sys.meta_path.insert(0, Finder(m["library"], m["real"]))
        LINE.send(b"{}")
        m = LINE.receive()
    while True:
        while REFUSED:
            report(REFUSED.pop(0))
        answer = serve(m)
        with LINE.lock:
            LINE.send(answer)
            m = LINE.receive()


main()
