import copy
from collections.abc import Mapping


class DictDiffer:
    """The difference of two mappings."""

    def __init__(self, current_dict, past_dict):
        self.current_dict, self.past_dict = current_dict, past_dict
        self.set_current, self.set_past = set(current_dict), set(past_dict)
        self.intersect = self.set_current & self.set_past

    def added(self):
        return self.set_current - self.intersect

    def removed(self):
        return self.set_past - self.intersect

    def changed(self):
        return {k for k in self.intersect if self.past_dict[k] != self.current_dict[k]}

    def unchanged(self):
        return {k for k in self.intersect if self.past_dict[k] == self.current_dict[k]}


def diff(current_dict, past_dict):
    return DictDiffer(current_dict, past_dict)


def deep_diff(old, new, ignore=None):
    found, ignore = {}, ignore or []
    old, new = copy.deepcopy(old), copy.deepcopy(new)
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in set(old) | set(new):
            if key in ignore:
                continue
            inner = deep_diff(old.get(key), new.get(key)) if key in old and key in new else \
                {"old": old[key]} if key in old else {"new": new[key]}
            for side, v in inner.items():
                found.setdefault(side, {})[key] = v
        return found
    return {} if old == new else {"old": old, "new": new}


def recursive_diff(past_dict, current_dict, ignore_missing_keys=True):
    return deep_diff(past_dict, current_dict)
