import collections
from collections import OrderedDict  # noqa: F401


class DefaultOrderedDict(OrderedDict):
    """An ordered mapping that makes what does not exist."""

    def __init__(self, default_factory=None, *args, **kwargs):
        if default_factory is not None and not callable(default_factory):
            raise TypeError("first argument must be callable")
        super().__init__(*args, **kwargs)
        self.default_factory = default_factory

    def __missing__(self, key):
        if self.default_factory is None:
            raise KeyError(key)
        self[key] = v = self.default_factory()
        return v

    def __copy__(self):
        return type(self)(self.default_factory, self)

    copy = __copy__


class HashableOrderedDict(OrderedDict):
    def __hash__(self):
        return id(self)


Mapping = collections.abc.Mapping
