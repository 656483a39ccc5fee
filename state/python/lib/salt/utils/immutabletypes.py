import collections.abc


class _Frozen:
    """What the kinds share: the object itself stays as it is, and is not given away."""

    def __init__(self, obj):
        self.__obj = obj

    def __len__(self):
        return len(self.__obj)

    def __iter__(self):
        return (freeze(item) for item in self.__obj)

    def __contains__(self, key):
        return key in self.__obj

    def __getitem__(self, key):
        return freeze(self.__obj[key])

    def __repr__(self):
        return "<{} {!r}>".format(type(self).__name__, self.__obj)

    def copy(self):
        return self.__obj.copy()


class ImmutableDict(_Frozen, collections.abc.Mapping):
    pass


class ImmutableList(_Frozen, collections.abc.Sequence):
    def __add__(self, other):
        return self.copy() + list(other)


class ImmutableSet(_Frozen, collections.abc.Set):
    _from_iterable = set


def freeze(obj):
    """What cannot be changed, of a mapping, a list or a set."""
    for kind, frozen in ((dict, ImmutableDict), (list, ImmutableList), (set, ImmutableSet)):
        if isinstance(obj, kind):
            return frozen(obj)
    return obj
