import collections
import inspect
import shlex

import salt.utils.stringutils
from salt.exceptions import SaltInvocationError

ArgSpec = collections.namedtuple("ArgSpec", "args varargs keywords defaults")


def clean_kwargs(**kwargs):
    return {k: v for k, v in kwargs.items() if not k.startswith("__")}


def invalid_kwargs(invalid_kwargs, raise_exc=True):
    if not invalid_kwargs:
        return ""
    text = "The following keyword arguments are not valid: {}".format(
        ", ".join("{}={}".format(k, v) for k, v in sorted(invalid_kwargs.items())))
    if raise_exc:
        raise SaltInvocationError(text)
    return text


def get_function_argspec(func, is_class_method=None):
    spec = inspect.getfullargspec(func)
    args = spec.args[1:] if inspect.ismethod(func) else spec.args
    return ArgSpec(args, spec.varargs, spec.varkw, spec.defaults)


def arg_lookup(fun, aspec=None):
    aspec = aspec or get_function_argspec(fun)
    defaults = aspec.defaults or ()
    split = len(aspec.args) - len(defaults)
    return {"args": aspec.args[:split], "kwargs": dict(zip(aspec.args[split:], defaults))}


def shlex_split(s, **kwargs):
    return [salt.utils.stringutils.to_unicode(x) for x in shlex.split(s, **kwargs)] if isinstance(s, str) else s


def split_input(val, mapper=None):
    mapper = mapper or (lambda x: x)
    items = val if isinstance(val, list) else str(val).split(",")
    return [mapper(x.strip() if isinstance(x, str) else x) for x in items]


def test_mode(**kwargs):
    for name, v in kwargs.items():
        if name.lower() == "test" and v:
            return True
    return False


def yamlify_arg(arg):
    if not isinstance(arg, str) or not arg.strip():
        return arg
    import salt.utils.yaml
    try:
        v = salt.utils.yaml.safe_load(arg)
    except salt.utils.yaml.YAMLError:
        return arg
    return arg if v is None and arg != "null" else v


def format_call(fun, data, initial_ret=None, expected_extra_kws=(), is_class_method=None):
    spec = get_function_argspec(fun)
    found = dict(initial_ret or {}, args=[], kwargs={})
    for name in spec.args:
        if name in data:
            found["kwargs"][name] = data[name]
    if spec.keywords:
        found["kwargs"].update({k: v for k, v in data.items() if k not in expected_extra_kws})
    return found


def parse_function(s):
    """The name, and the arguments as texts, of a call such as f(a, b=1)."""
    name, call, rest = s.partition("(")
    if not call or not rest.endswith(")"):
        return None, None, None
    args, kwargs = [], {}
    for word in split_arguments(rest[:-1]):
        k, equals, v = word.partition("=")
        if equals:
            kwargs[k.strip()] = v.strip()
        else:
            args.append(word)
    return name, args, kwargs


def split_arguments(text):
    words, depth, quote = [""], 0, ""
    for c in text:
        if quote or c in "\"'":
            if not quote or c == quote:
                quote = "" if quote else c
                if not depth:
                    continue
        else:
            depth += (c in "[{(") - (c in "]})")
            if c == "," and not depth:
                words.append("")
                continue
            if c == " ":
                continue
        words[-1] += c
    return [w for w in words if w]


def parse_input(args, condition=True, no_parse=None):
    """Arguments of a command line: data, and in a mapping those that have a name."""
    found, named = [], {}
    for arg in args:
        key, text = parse_kwarg(arg) if isinstance(arg, str) else (None, None)
        if key:
            named[key] = text if key in (no_parse or ()) else yamlify_arg(text)
        elif arg is not None:
            found.append(yamlify_arg(arg))
    if condition:
        return condition_input(found, named)
    return found, named


def condition_input(args, kwargs):
    found = list(args)
    if kwargs:
        found.append(dict(kwargs, __kwarg__=True))
    return found


def parse_kwarg(text):
    k, equals, v = text.partition("=")
    return (k, v) if equals and k.isidentifier() else (None, None)
