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
    waiting = []

    def __init__(self, *dependencies, **kwargs):
        self.dependencies, self.wanted = dependencies, kwargs

    def __call__(self, function):
        self.waiting.append((self, function))
        return function

    def met(self, module):
        for d in self.dependencies:
            found = None if d is True else module.__dict__.get(d)
            if "retcode" in self.wanted or "nonzero_retcode" in self.wanted:
                code = exit_code(d)
                if self.wanted["retcode"] != code if "retcode" in self.wanted else \
                        bool(self.wanted["nonzero_retcode"]) != (code != 0):
                    return False
            elif d is not True and not found:
                return False
            elif found and "version" in self.wanted:
                from salt.utils.versions import version_cmp
                if (version_cmp(getattr(found, "__version__", "0"), self.wanted["version"]) or 0) < 0:
                    return False
        return True


def exit_code(command):
    import shlex
    import subprocess
    try:
        return subprocess.call(shlex.split(command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except OSError:
        return -1


def enforce(module, functions):
    """Takes the functions of a module away whose dependencies do not exist."""
    mine = [w for w in depends.waiting if getattr(w[1], "__module__", None) == module.__name__]
    for one, function in mine:
        depends.waiting.remove((one, function))
        if not one.met(module):
            for name in [n for n, f in functions.items() if f.__name__ == function.__name__]:
                functions[name] = one.wanted.get("fallback_function")
                if functions[name] is None:
                    del functions[name]


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
