import copy
from collections.abc import Mapping

from salt.defaults import DEFAULT_TARGET_DELIM


def update(dest, upd, recursive_update=True, merge_lists=False):
    """Merges upd into dest."""
    if not isinstance(dest, Mapping) or not isinstance(upd, Mapping):
        raise TypeError("Cannot update using non-dict types in dictupdate.update()")
    if not recursive_update:
        dest.update(upd)
        return dest
    for key in list(upd):
        new, old = upd[key], dest.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            dest[key] = update(old, new, merge_lists=merge_lists)
        elif isinstance(old, list) and isinstance(new, list):
            if merge_lists:
                merged = copy.deepcopy(old)
                merged.extend(x for x in new if x not in merged)
                dest[key] = merged
            else:
                dest[key] = upd[key]
        else:
            dest[key] = new
    return dest


def merge_list(obj_a, obj_b):
    found = {}
    for key, v in obj_a.items():
        found[key] = [v, obj_b[key]] if key in obj_b else v
    return found


def merge_recurse(obj_a, obj_b, merge_lists=False):
    return update(copy.deepcopy(obj_a), obj_b, merge_lists=merge_lists)


def merge_overwrite(obj_a, obj_b, merge_lists=False):
    found = copy.copy(obj_a)
    found.update(obj_b)
    return found


merge_aggregate = merge_recurse


def merge(obj_a, obj_b, strategy="smart", renderer="yaml", merge_lists=False):
    if strategy in ("smart", "recurse", "aggregate"):
        return merge_recurse(obj_a, obj_b, merge_lists)
    if strategy == "list":
        return merge_list(obj_a, obj_b)
    if strategy == "overwrite":
        return merge_overwrite(obj_a, obj_b, merge_lists)
    return copy.deepcopy(obj_a) if strategy == "none" else merge_recurse(obj_a, obj_b, merge_lists)


def _above(in_dict, keys, delimiter, ordered_dict=False):
    words = keys.split(delimiter)
    at = in_dict
    for word in words[:-1]:
        at = at.setdefault(word, {})
    return at, words[-1]


def ensure_dict_key(in_dict, keys, delimiter=DEFAULT_TARGET_DELIM, ordered_dict=False):
    at = in_dict
    for word in keys.split(delimiter):
        at = at.setdefault(word, {})
    return in_dict


def set_dict_key_value(in_dict, keys, value, delimiter=DEFAULT_TARGET_DELIM, ordered_dict=False):
    at, last = _above(in_dict, keys, delimiter)
    at[last] = value
    return in_dict


def update_dict_key_value(in_dict, keys, value, delimiter=DEFAULT_TARGET_DELIM, ordered_dict=False):
    at, last = _above(in_dict, keys, delimiter)
    at.setdefault(last, {}).update(value)
    return in_dict


def append_dict_key_value(in_dict, keys, value, delimiter=DEFAULT_TARGET_DELIM, ordered_dict=False):
    at, last = _above(in_dict, keys, delimiter)
    at.setdefault(last, []).append(value)
    return in_dict


def extend_dict_key_value(in_dict, keys, value, delimiter=DEFAULT_TARGET_DELIM, ordered_dict=False):
    at, last = _above(in_dict, keys, delimiter)
    at.setdefault(last, []).extend(value)
    return in_dict
