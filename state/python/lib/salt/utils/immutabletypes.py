import collections.abc


class ImmutableDict(collections.abc.Mapping):
    def __init__(self, obj):
        self.__obj = obj

    def __len__(self):
        return len(self.__obj)

    def __iter__(self):
        return iter(self.__obj)

    def __getitem__(self, key):
        return freeze(self.__obj[key])

    def __repr__(self):
        return "<{} {!r}>".format(type(self).__name__, self.__obj)

    def copy(self):
        return dict(self.__obj)


class ImmutableList(collections.abc.Sequence):
    def __init__(self, obj):
        self.__obj = obj

    def __len__(self):
        return len(self.__obj)

    def __getitem__(self, key):
        return freeze(self.__obj[key])

    def __add__(self, other):
        return list(self.__obj) + list(other)

    def __repr__(self):
        return "<{} {!r}>".format(type(self).__name__, self.__obj)

    def copy(self):
        return list(self.__obj)


class ImmutableSet(collections.abc.Set):
    def __init__(self, obj):
        self.__obj = obj

    def __len__(self):
        return len(self.__obj)

    def __iter__(self):
        return iter(self.__obj)

    def __contains__(self, key):
        return key in self.__obj


def freeze(obj):
    """What cannot be changed, of a mapping, a list or a set."""
    if isinstance(obj, dict):
        return ImmutableDict(obj)
    if isinstance(obj, list):
        return ImmutableList(obj)
    if isinstance(obj, set):
        return ImmutableSet(obj)
    return obj
