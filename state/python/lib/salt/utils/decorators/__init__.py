import functools


def memoize(func):
    """Keeps the answers of a function for the run."""
    kept = {}

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        key = repr((args, sorted(kwargs.items())))
        if key not in kept:
            kept[key] = func(*args, **kwargs)
        return kept[key]
    return wrapper


class depends:
    """Takes a function away where something that it needs does not exist."""

    def __init__(self, *dependencies, **kwargs):
        self.dependencies, self.fallback = dependencies, kwargs.get("fallback_function")

    def __call__(self, function):
        present = all(function.__globals__.get(d, d is True) if isinstance(d, str) else d for d in self.dependencies)
        if present:
            return function
        if self.fallback is not None:
            return self.fallback
        return None


def ensure_unicode_args(function):
    return function


def ignores_kwargs(*names):
    def wrap(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            return function(*args, **{k: v for k, v in kwargs.items() if k not in names})
        return call
    return wrap


def allow_one_of(*names):
    def wrap(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            from salt.exceptions import SaltInvocationError
            if sum(1 for n in names if kwargs.get(n) is not None) > 1:
                raise SaltInvocationError("Only one of the following is allowed: {}".format(", ".join(names)))
            return function(*args, **kwargs)
        return call
    return wrap


def is_deprecated(*args, **kwargs):
    return lambda function: function


with_deprecated = is_deprecated


def timing(function):
    return function
