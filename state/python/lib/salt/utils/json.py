import json as _json
from json import JSONDecodeError, JSONDecoder, JSONEncoder  # noqa: F401

import salt.utils.stringutils


def loads(s, **kwargs):
    kwargs.pop("json_module", None)
    kwargs.pop("encoding", None)
    return _json.loads(s, **kwargs)


def load(fp, **kwargs):
    kwargs.pop("json_module", None)
    return _json.load(fp, **kwargs)


def dumps(obj, **kwargs):
    kwargs.pop("json_module", None)
    old = kwargs.pop("default", None)

    def default(v):
        if isinstance(v, bytes):
            return v.decode("utf-8", "replace")
        if isinstance(v, (set, frozenset)):
            return list(v)
        return old(v) if old else str(v)
    kwargs.setdefault("ensure_ascii", False)
    return _json.dumps(obj, default=default, **kwargs)


def dump(obj, fp, **kwargs):
    fp.write(dumps(obj, **kwargs))


def find_json(raw):
    """The JSON in a text that has other lines before and after it."""
    lines = raw.splitlines()
    for start, line in enumerate(lines):
        if line.lstrip()[:1] in ("{", "["):
            for end in range(len(lines), start, -1):
                try:
                    return _json.loads("\n".join(lines[start:end]))
                except ValueError:
                    continue
    raise ValueError("there is no JSON in the text")


def import_json():
    return _json


def to_unicode(v):
    return salt.utils.stringutils.to_unicode(v)
