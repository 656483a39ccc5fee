"""YAML, read and written by the agent."""
import collections
import sys


class YAMLError(Exception):
    """A text is no YAML."""


parser_error = scanner_error = YAMLError


def _ask(name, *args, **kwargs):
    try:
        return sys.modules["__main__"].LINE.ask("salt", name=name, args=list(args), kwargs=kwargs)
    except Exception as e:
        raise YAMLError(str(e))


def load(stream, Loader=None):
    text = stream.read() if hasattr(stream, "read") else stream
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    return sys.modules["__main__"].LINE.ask("yaml", text=text)


def safe_load(stream, Loader=None):
    return load(stream)


def _plain(v):
    if isinstance(v, collections.abc.Mapping):
        return (collections.OrderedDict if isinstance(v, collections.OrderedDict) else dict)(
            (k, _plain(item)) for k, item in v.items())
    if isinstance(v, (list, tuple, set, frozenset)):
        return [_plain(item) for item in v]
    return v


def dump(data, stream=None, **kwargs):
    flow = kwargs.get("default_flow_style")
    ordered = isinstance(data, collections.OrderedDict) or not kwargs.get("sort_keys", True)
    text = sys.modules["__main__"].LINE.ask("dump", data=data, flow=flow, ordered=ordered)
    if stream is None:
        return text
    stream.write(text)
    return None


def safe_dump(data, stream=None, **kwargs):
    return dump(_plain(data), stream, **kwargs)


class SafeOrderedDumper:
    """Named by modules as a Dumper; dump takes it and does without."""


SaltYamlSafeLoader = SafeLoader = OrderedDumper = SafeDumper = Dumper = SafeOrderedDumper


def get_dumper(name):
    return SafeOrderedDumper
