import collections
import copy
import fnmatch
import functools
import re
from collections.abc import Mapping, MutableMapping, Sequence

import salt.utils.dictupdate
import salt.utils.stringutils
from salt.defaults import DEFAULT_TARGET_DELIM

_MISSING = object()


def traverse_dict(data, key, default=None, delimiter=DEFAULT_TARGET_DELIM):
    """What a path such as a:b leads to."""
    at = data
    try:
        for word in key.split(delimiter):
            at = at[word]
    except (KeyError, IndexError, TypeError):
        return default
    return at


def traverse_dict_and_list(data, key, default=None, delimiter=DEFAULT_TARGET_DELIM):
    """traverse_dict, with numbers that lead into lists."""
    at = data
    for word in key.split(delimiter) if isinstance(key, str) else key:
        if isinstance(at, list):
            found = _MISSING
            if str(word).lstrip("-").isdigit() and -len(at) <= int(word) < len(at):
                found = at[int(word)]
            else:
                for item in at:
                    if isinstance(item, dict) and word in item:
                        found = item[word]
            if found is _MISSING:
                return default
            at = found
        else:
            try:
                at = at[word]
            except KeyError:
                try:
                    at = at[int(word)]
                except (KeyError, ValueError, TypeError):
                    return default
            except (IndexError, TypeError):
                return default
    return at


def subdict_match(data, expr, delimiter=DEFAULT_TARGET_DELIM, regex_match=False, exact_match=False):
    words = expr.split(delimiter)
    for i in range(1, len(words) + 1):
        found = traverse_dict_and_list(data, delimiter.join(words[:i]), _MISSING, delimiter)
        if found is _MISSING:
            continue
        pattern = delimiter.join(words[i:])
        if pattern == "*":
            return True
        for item in found if isinstance(found, (list, dict)) else [found]:
            text = str(item)
            if exact_match and text.lower() == pattern.lower() or regex_match and re.match(pattern.lower(), text.lower()) or \
                    not exact_match and not regex_match and fnmatch.fnmatch(text.lower(), pattern.lower()):
                return True
    return False


def compare_dicts(old=None, new=None):
    changes = {}
    for key in set(new or {}).union(old or {}):
        if key not in old:
            changes[key] = {"old": "", "new": new[key]}
        elif key not in new:
            changes[key] = {"new": "", "old": old[key]}
        elif new[key] != old[key]:
            changes[key] = {"old": old[key], "new": new[key]}
    return changes


def compare_lists(old=None, new=None):
    changes = {}
    added, removed = [i for i in new if i not in old], [i for i in old if i not in new]
    if added:
        changes["new"] = added
    if removed:
        changes["old"] = removed
    return changes


def decode(data, encoding=None, errors="strict", keep=False, normalize=False, preserve_dict_class=False,
           preserve_tuples=False, to_str=False):
    more = dict(encoding=encoding, errors=errors, keep=keep)
    if isinstance(data, Mapping):
        kind = type(data) if preserve_dict_class else dict
        return kind((decode(k, **more), decode(v, preserve_dict_class=preserve_dict_class, preserve_tuples=preserve_tuples,
                                               **more)) for k, v in data.items())
    if isinstance(data, tuple):
        items = [decode(v, **more) for v in data]
        return tuple(items) if preserve_tuples else items
    if isinstance(data, list):
        return [decode(v, **more) for v in data]
    if isinstance(data, bytes):
        try:
            return salt.utils.stringutils.to_unicode(data, encoding, errors)
        except UnicodeDecodeError:
            if not keep:
                raise
    return data


decode_dict = decode_list = decode_tuple = decode


def encode(data, encoding=None, errors="strict", **kwargs):
    if isinstance(data, Mapping):
        return {encode(k, encoding): encode(v, encoding) for k, v in data.items()}
    if isinstance(data, (list, tuple)):
        return [encode(v, encoding) for v in data]
    return salt.utils.stringutils.to_bytes(data, encoding) if isinstance(data, str) else data


encode_dict = encode_list = encode_tuple = encode


def is_dictlist(data):
    return isinstance(data, list) and bool(data) and all(isinstance(i, dict) and len(i) == 1 for i in data)


def repack_dictlist(data, strict=False, recurse=False, key_cb=None, val_cb=None):
    """A mapping of a list of mappings."""
    key_cb, val_cb = key_cb or (lambda k: k), val_cb or (lambda k, v: v)
    found = {}
    if not isinstance(data, list):
        return found
    for item in data:
        if isinstance(item, (str, int, float)):
            found[key_cb(item)] = None
        elif isinstance(item, dict) and len(item) == 1:
            k, v = next(iter(item.items()))
            if recurse and is_dictlist(v):
                v = repack_dictlist(v, recurse=recurse)
            found[key_cb(k)] = val_cb(k, v)
        else:
            return {}
    return found


def is_list(value):
    return isinstance(value, list)


def is_iter(thing, ignore=(str,)):
    if ignore and isinstance(thing, ignore):
        return False
    try:
        iter(thing)
        return True
    except TypeError:
        return False


def is_true(value=None):
    try:
        value = int(value)
    except (ValueError, TypeError):
        pass
    if isinstance(value, (int, float)):
        return value > 0
    if isinstance(value, str):
        return str(value).lower() == "true"
    return bool(value)


def exactly_n(items, amount=1):
    return sum(1 for i in items if i) == amount


def exactly_one(items):
    return exactly_n(items)


def filter_by(lookup_dict, lookup, traverse, merge=None, default="default", base=None):
    found = None
    for at in lookup if isinstance(lookup, (list, tuple)) else [lookup]:
        value = traverse_dict_and_list(traverse, at, None)
        for candidate in value if isinstance(value, list) else [value]:
            for key in lookup_dict:
                if found is None and fnmatch.fnmatchcase(str(candidate), str(key)):
                    found = lookup_dict[key]
    found = copy.deepcopy(lookup_dict.get(default) if found is None else found)
    if base and base in lookup_dict:
        found = salt.utils.dictupdate.update(copy.deepcopy(lookup_dict[base]), found or {})
    if merge:
        found = salt.utils.dictupdate.update(found or {}, copy.deepcopy(merge))
    return found


def stringify(data):
    return [str(item) if not isinstance(item, str) else item for item in data]


def simple_types_filter(data):
    if data is None or isinstance(data, (str, int, float, bool)):
        return data
    if isinstance(data, Mapping):
        return {simple_types_filter(k): simple_types_filter(v) for k, v in data.items()}
    if isinstance(data, Sequence):
        return [simple_types_filter(v) for v in data]
    return repr(data)


def sorted_ignorecase(to_sort):
    return sorted(to_sort, key=lambda x: x.lower())


def flatten(data, levels=None, preserve_nulls=False, _ids=None):
    found = []
    for item in data:
        if isinstance(item, list) and levels != 0:
            found.extend(flatten(item, None if levels is None else levels - 1, preserve_nulls))
        elif item is not None or preserve_nulls:
            found.append(item)
    return found


def filter_falsey(data, recurse_depth=None, ignore_types=()):
    if isinstance(data, dict):
        return type(data)((k, v) for k, v in data.items() if v or type(v) in ignore_types)
    return type(data)(v for v in data if v or type(v) in ignore_types)


def get_value(obj, path, default=None):
    return [{"value": traverse_dict_and_list(obj, path, default)}]


def recursive_diff(old, new, ignore_keys=None, ignore_order=False, ignore_missing_keys=False):
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        found = {"old": {}, "new": {}}
        for key in set(old) | set(new):
            if key in (ignore_keys or ()):
                continue
            if key in old and key in new:
                inner = recursive_diff(old[key], new[key])
                for side in inner:
                    found[side][key] = inner[side]
            else:
                side = "old" if key in old else "new"
                found[side][key] = (old if key in old else new)[key]
        return {k: v for k, v in found.items() if v}
    return {} if old == new else {"old": old, "new": new}


class CaseInsensitiveDict(MutableMapping):
    def __init__(self, init=None):
        self._data = collections.OrderedDict()
        self.update(init or {})

    def __getitem__(self, key):
        return self._data[getattr(key, "lower", lambda: key)()][1]

    def __setitem__(self, key, value):
        self._data[getattr(key, "lower", lambda: key)()] = (key, value)

    def __delitem__(self, key):
        del self._data[getattr(key, "lower", lambda: key)()]

    def __iter__(self):
        return (item[0] for item in self._data.values())

    def __len__(self):
        return len(self._data)


partial = functools.partial


def to_lowercase(data, preserve_dict_class=False):
    return _changed(data, str.lower)


def to_uppercase(data, preserve_dict_class=False):
    return _changed(data, str.upper)


def _changed(data, change):
    if isinstance(data, str):
        return change(data)
    if isinstance(data, Mapping):
        return {_changed(k, change): _changed(v, change) for k, v in data.items()}
    if isinstance(data, (list, tuple)):
        return type(data)(_changed(item, change) for item in data)
    return data


def substr_in_list(string_to_search_for, list_to_search):
    return any(string_to_search_for in s for s in list_to_search)


def mysql_to_dict(data, key):
    """Reads a table that mysql prints."""
    found, names = {}, []
    for line in data:
        if not line or line.startswith("+"):
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not names:
            names = cells
            continue
        row = dict(zip(names, map(salt.utils.stringutils.to_num, cells)))
        found[row[key]] = row
    return found
