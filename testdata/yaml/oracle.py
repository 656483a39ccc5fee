"""Loads YAML documents as Salt does, for the tests of state/yaml to compare with.

Reads a JSON list of documents from standard input and writes a JSON list of answers: {"ok": value}
with the types spelled out, or {"err": line}, where line is 0 if the loader does not tell one.
"""

import json
import sys

import yaml


class Loader(yaml.CSafeLoader):
    """PyYAML with libyaml, and the rules Salt adds."""

    def construct_mapping(self, node, deep=False):
        if not isinstance(node, yaml.MappingNode):
            raise yaml.constructor.ConstructorError(None, None, "expected a mapping", node.start_mark)
        self.flatten_mapping(node)
        out = {}
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            value = self.construct_object(value_node, deep=True)
            try:
                hash(key)
            except TypeError:
                raise yaml.constructor.ConstructorError(None, None, "unacceptable key", key_node.start_mark)
            if key in out:
                raise yaml.constructor.ConstructorError(None, None, "conflicting ID", key_node.start_mark)
            out[key] = value
        return out

    def flatten_mapping(self, node):
        # A key that the mapping has itself wins over a merged one; they are compared as written.
        merged, rest = [], []
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                sources = [value]
                if isinstance(value, yaml.SequenceNode):
                    sources = reversed(value.value)
                for source in sources:
                    if not isinstance(source, yaml.MappingNode):
                        raise yaml.constructor.ConstructorError(None, None, "cannot merge", source.start_mark)
                    self.flatten_mapping(source)
                    merged.extend(source.value)
                continue
            if key.tag == "tag:yaml.org,2002:value":
                key.tag = "tag:yaml.org,2002:str"
            rest.append((key, value))
        written = [key.value for key, _ in rest]
        node.value = [pair for pair in merged if pair[0].value not in written] + rest

    def construct_plain_map(self, node):
        return self.construct_mapping(node, deep=True)

    def construct_plain_seq(self, node):
        return self.construct_sequence(node, deep=True)

    def construct_decimal(self, node):
        text = node.value
        if text != "0" and text.startswith("0") and not text.startswith(("0b", "0x")):
            node.value = text.lstrip("0") or "0"
        return self.construct_yaml_int(node)


Loader.add_constructor("tag:yaml.org,2002:map", Loader.construct_plain_map)
Loader.add_constructor("tag:yaml.org,2002:seq", Loader.construct_plain_seq)
Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_decimal)
Loader.add_constructor("tag:yaml.org,2002:timestamp", Loader.construct_scalar)


def typed(value):
    if value is None:
        return ["null"]
    if isinstance(value, bool):
        return ["bool", value]
    if isinstance(value, int):
        return ["int", str(value)]
    if isinstance(value, float):
        return ["float", repr(value)]
    if isinstance(value, bytes):
        try:
            return ["str", value.decode()]
        except UnicodeDecodeError:
            return ["bytes", value.hex()]
    if isinstance(value, dict):
        return ["map", [[typed(k), typed(v)] for k, v in value.items()]]
    if isinstance(value, (list, tuple)):
        return ["list", [typed(v) for v in value]]
    if isinstance(value, set):
        return ["set"]
    return ["str", value]


def load(doc):
    try:
        return {"ok": typed(yaml.load(doc, Loader=Loader))}
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        return {"err": mark.line + 1 if mark else 0, "why": str(e.problem)}
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, RecursionError) as e:
        return {"err": 0, "why": str(e)}


def main():
    json.dump([load(doc) for doc in json.load(sys.stdin)], sys.stdout)


main()
