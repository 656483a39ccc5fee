import copy


def freeze(obj):
    return copy.deepcopy(obj)


class ImmutableDict(dict):
    pass


class ImmutableList(list):
    pass
