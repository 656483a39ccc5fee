import contextlib


@contextlib.contextmanager
def func_globals_inject(func, **overrides):
    """Gives a function other globals for a while."""
    scope = func.__globals__
    before = {k: scope[k] for k in overrides if k in scope}
    scope.update(overrides)
    try:
        yield
    finally:
        for k in overrides:
            scope.pop(k, None)
        scope.update(before)
