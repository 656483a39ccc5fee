import collections


class PrintableDict(collections.OrderedDict):
    """An ordered mapping that is printed as a plain one."""

    def __str__(self):
        return str(dict(self))

    def __repr__(self):
        return repr(dict(self))
