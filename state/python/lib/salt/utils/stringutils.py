import base64
import difflib
import fnmatch
import os
import re
import shlex


def to_bytes(s, encoding=None, errors="strict"):
    if s is None:
        return s
    if isinstance(s, (bytes, bytearray)):
        return bytes(s)
    if isinstance(s, str):
        return s.encode(encoding or "utf-8", errors)
    raise TypeError("expected str, bytes, or bytearray not {}".format(type(s)))


def to_str(s, encoding=None, errors="strict", normalize=False):
    if s is None or isinstance(s, str):
        return s
    if isinstance(s, (bytes, bytearray)):
        return bytes(s).decode(encoding or "utf-8", errors)
    raise TypeError("expected str, bytes, or bytearray not {}".format(type(s)))


def to_unicode(s, encoding=None, errors="strict", normalize=False):
    return to_str(s, encoding, errors)


def to_num(text):
    for kind in (int, float):
        try:
            return kind(text)
        except (TypeError, ValueError):
            pass
    return text


def to_none(text):
    return text if str(text).strip() else None


def to_snake_case(camel_input):
    return camel_to_snake_case(camel_input)


def camel_to_snake_case(camel_input):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", camel_input).lower()


def snake_to_camel_case(snake_input, uppercamel=False):
    words = snake_input.split("_")
    return ("" if uppercamel else words[0]) + "".join(w.capitalize() for w in (words if uppercamel else words[1:]))


def is_quoted(v):
    if isinstance(v, str) and v and v[0] == v[-1] and v[0] in "\"'":
        return v[0]
    return ""


def dequote(v):
    return v[1:-1] if is_quoted(v) else v


def is_hex(v):
    try:
        int(v, 16)
        return True
    except (TypeError, ValueError):
        return False


def is_text_str(v):
    return is_binary(v) is False


def is_binary(data):
    if not data or not isinstance(data, (str, bytes)):
        return False
    return (b"\0" if isinstance(data, bytes) else "\0") in data


is_bin_str = is_binary


def contains_whitespace(text):
    return any(c.isspace() for c in text)


def human_to_bytes(size, default_unit="B", handle_metric=False):
    m = re.match(r"(?P<value>[0-9.]*)\s*(?P<unit>.*)$", str(size).strip())
    unit = (m.group("unit") or default_unit).strip()
    power = " KMGTPEZY".find(unit[:1].upper())
    base = 1000 if handle_metric and unit.lower().endswith("b") and "i" not in unit else 1024
    return int(float(m.group("value") or 0) * base ** max(0, power)) if unit[:1].upper() != "B" else int(float(m.group("value")))


def build_whitespace_split_regex(text):
    return "".join(r"(?:[\s]+)?" + re.escape(word) for word in shlex.split(text)) + r"(?:[\s]+)?"


def expr_match(line, expr):
    if line == expr or fnmatch.fnmatchcase(line, expr):
        return True
    try:
        return bool(re.match(r"\A{}\Z".format(expr), line))
    except re.error:
        return False


def check_whitelist_blacklist(value, whitelist=None, blacklist=None):
    def hit(patterns):
        return any(expr_match(value, p) for p in ([patterns] if isinstance(patterns, str) else patterns or []))
    if blacklist and hit(blacklist):
        return False
    return hit(whitelist) if whitelist else True


def check_include_exclude(path_str, include_pat=None, exclude_pat=None):
    def hit(p):
        if p.startswith("E@"):
            return bool(re.search(p[2:], path_str))
        return fnmatch.fnmatch(path_str, p)
    if include_pat and not hit(include_pat):
        return False
    return not (exclude_pat and hit(exclude_pat))


def print_cli(msg, retries=10, step=0.01):
    print(msg)


def get_context(template, line, num_lines=5, marker=None):
    lines = template.splitlines()
    if line > len(lines):
        return template
    first, last = max(0, line - num_lines - 1), line + num_lines
    shown = [text + (marker or "" if i + 1 == line else "") for i, text in enumerate(lines)]
    part = (["[...]"] if first > 0 else []) + shown[first:last] + (["[...]"] if last < len(lines) else [])
    return "---\n{}\n---".format("\n".join(part))


def base64_encodestring(text):
    return base64.b64encode(to_bytes(text)).decode()


def random(size=32):
    return base64.b64encode(os.urandom(size)).decode()[:size]


def get_diff(a, b, *args, **kwargs):
    return "".join(difflib.unified_diff(a.splitlines(True), b.splitlines(True), *args, **kwargs))
