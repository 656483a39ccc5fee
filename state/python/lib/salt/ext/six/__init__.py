"""The names of six that modules use, for Python 3 alone."""
import builtins
import io
import sys

PY2, PY3, PY34 = False, True, True
string_types, integer_types, class_types = (str,), (int,), (type,)
text_type, binary_type, MAXSIZE = str, bytes, sys.maxsize
StringIO, BytesIO = io.StringIO, io.BytesIO
unichr, int2byte = chr, lambda i: bytes((i,))
exec_, print_ = builtins.exec, builtins.print


def iteritems(d, **kw):
    return iter(d.items(**kw))


def iterkeys(d, **kw):
    return iter(d.keys(**kw))


def itervalues(d, **kw):
    return iter(d.values(**kw))


def iterlists(d, **kw):
    return iter(d.lists(**kw))


def viewitems(d):
    return d.items()


def viewkeys(d):
    return d.keys()


def viewvalues(d):
    return d.values()


def u(s):
    return s


def b(s):
    return s.encode("latin-1")


def callable(v):
    return builtins.callable(v)


def next(iterator, *default):
    return builtins.next(iterator, *default)


advance_iterator = next


def reraise(kind, v=None, tb=None):
    v = kind() if v is None else v
    raise v.with_traceback(tb)


def raise_from(v, cause):
    raise v from cause


def with_metaclass(meta, *bases):
    class Metaclass(type):
        def __new__(cls, name, this_bases, d):
            return meta(name, bases, d)

    return type.__new__(Metaclass, "temporary", (), {})


def add_metaclass(meta):
    def wrap(cls):
        d = {k: v for k, v in cls.__dict__.items() if k not in ("__dict__", "__weakref__")}
        return meta(cls.__name__, cls.__bases__, d)

    return wrap


def python_2_unicode_compatible(cls):
    return cls


def ensure_binary(s, encoding="utf-8", errors="strict"):
    return s if isinstance(s, bytes) else s.encode(encoding, errors)


def ensure_text(s, encoding="utf-8", errors="strict"):
    return s.decode(encoding, errors) if isinstance(s, bytes) else s


ensure_str = ensure_text


def __getattr__(name):
    if name == "moves":
        import importlib
        return importlib.import_module(__name__ + ".moves")
    raise AttributeError(name)
