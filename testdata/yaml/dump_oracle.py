"""Dumps values with PyYAML and libyaml, for the tests of state/yaml to compare with.

Reads a JSON list of {"value": typed value, "flow": null|true|false, "sort": bool, "ascii": bool} from
standard input and writes a JSON list of texts. Types are spelled out as oracle.py does; ["ref", n]
is the n-th list or mapping once more, so that shared ones can be asked for.
"""

import json
import sys

import yaml


def build(typed, seen):
    kind = typed[0]
    if kind == "null":
        return None
    if kind == "int":
        return int(typed[1])
    if kind == "float":
        return float(typed[1])
    if kind == "bytes":
        return bytes.fromhex(typed[1])
    if kind == "ref":
        return seen[typed[1]]
    if kind == "list":
        out = []
        seen.append(out)
        out.extend(build(item, seen) for item in typed[1])
        return out
    if kind == "map":
        out = {}
        seen.append(out)
        for key, item in typed[1]:
            out[build(key, seen)] = build(item, seen)
        return out
    return typed[1]


def dump(case):
    return yaml.dump(
        build(case["value"], []),
        Dumper=yaml.CSafeDumper,
        default_flow_style=case["flow"],
        sort_keys=case["sort"],
        allow_unicode=not case["ascii"],
    )


json.dump([dump(case) for case in json.load(sys.stdin)], sys.stdout)
