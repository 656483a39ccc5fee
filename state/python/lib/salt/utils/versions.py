import re
import sys


class Version:
    """A version of numbers and words, in the order of distutils' LooseVersion."""

    def __init__(self, vstring=None):
        self.vstring = str(vstring)
        self.version = [int(w) if w.isdigit() else w for w in re.findall(r"\d+|[a-z]+", self.vstring)]

    parse = __init__

    def _cmp(self, other):
        other = other if isinstance(other, Version) else type(self)(other)
        mine, theirs = [[(1, w, "") if isinstance(w, int) else (0, 0, w) for w in v.version] for v in (self, other)]
        return (mine > theirs) - (mine < theirs)

    def __eq__(self, other):
        return self._cmp(other) == 0

    def __lt__(self, other):
        return self._cmp(other) < 0

    def __le__(self, other):
        return self._cmp(other) <= 0

    def __gt__(self, other):
        return self._cmp(other) > 0

    def __ge__(self, other):
        return self._cmp(other) >= 0

    def __hash__(self):
        return hash(self.vstring)

    def __str__(self):
        return self.vstring

    def __repr__(self):
        return "{}('{}')".format(type(self).__name__, self.vstring)


class LooseVersion(Version):
    pass


class StrictVersion(Version):
    pass


def version_cmp(pkg1, pkg2, ignore_epoch=False):
    a, b = LooseVersion(pkg1), LooseVersion(pkg2)
    if ignore_epoch:
        a, b = (LooseVersion(str(v).rpartition(":")[2]) for v in (pkg1, pkg2))
    return a._cmp(b)


def compare(ver1="", oper="==", ver2="", cmp_func=None, ignore_epoch=False):
    result = (cmp_func or version_cmp)(ver1, ver2)
    if result is None:
        return False
    return {"==": result == 0, "=": result == 0, "!=": result != 0, "<": result < 0, "<=": result <= 0, ">": result > 0,
            ">=": result >= 0}[oper]


compare_versions = compare


def warn_until(version, message, *args, **kwargs):
    sys.modules["logging"].getLogger("salt").info(message) if "logging" in sys.modules else None


warn_until_date = warn_until


def kwargs_warn_until(kwargs, version, *args, **more):
    return None


def check_boto_reqs(**kwargs):
    return True


def reqs(*args, **kwargs):
    return True


def depends(*args, **kwargs):
    return lambda function: function


def parse(text):
    return LooseVersion(text)
