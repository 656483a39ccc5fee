"""SLS files in Python that begin with #!pyobjects: a class for each state module, and a call for each state."""
import os
import re
import sys

from salt.utils.pyobjects import Map, Registry, SaltObject, StateFactory

FROM = re.compile(r"\s*from\s+(salt://.*?)\s+import\s+(.*)$")
IMPORT = re.compile(r"\s*import\s+(salt://.*?)\s*$")


class PyobjectsModule:
    """A file that was imported whole."""

    def __init__(self, name, names):
        self.__dict__.update(names)
        self.__dict__["name"] = name


def names_of(sls):
    """The names that each file has."""
    functions = {}
    for full in __states__.keys():
        module, _, function = full.partition(".")
        functions.setdefault(module, []).append(function)
    names = {"".join(part.capitalize() for part in module.split("_")): StateFactory(module, functions[module])
             for module in functions}
    names.update({"include": Registry.include, "extend": Registry.make_extend, "Map": Map, "StateFactory": StateFactory,
                  "salt": SaltObject(__salt__), "pillar": __salt__["pillar.get"], "grains": __salt__["grains.get"],
                  "config": __salt__["config.get"], "__salt__": __salt__, "__pillar__": __pillar__,
                  "__grains__": __grains__, "__opts__": __opts__, "__sls__": sls})
    if "mine.get" in __salt__:
        names["mine"] = __salt__["mine.get"]
    return names


def imported(line, names, common, saltenv):
    """Whether a line imports from a file of the tree, whose names it then adds."""
    found = FROM.match(line) or IMPORT.match(line)
    if not found:
        return False
    url = found.group(1).strip()
    text = sys.modules["__main__"].LINE.ask("import", url=url, env=saltenv)
    if not isinstance(text, str):
        raise ImportError("there is no file %s" % url)
    theirs = executed(text, url, common, saltenv)
    if found.re is IMPORT:
        base = os.path.splitext(os.path.basename(url))[0]
        names[base] = PyobjectsModule(base, theirs)
        return True
    for item in found.group(2).split(","):
        name, _, alias = item.strip().partition(" as ")
        if name.strip() not in theirs:
            raise ImportError("%s has no name %s" % (url, name.strip()))
        names[alias.strip() or name.strip()] = theirs[name.strip()]
    return True


def executed(text, path, common, saltenv):
    """The names of a file that was executed. Lines keep their numbers."""
    names = dict(common)
    enabled, Registry.enabled = Registry.enabled, False
    try:
        lines = ["" if imported(line, names, common, saltenv) else line for line in text.splitlines()]
    finally:
        Registry.enabled = enabled
    exec(compile("\n".join(lines) + "\n", path, "exec", dont_inherit=True), names)
    return names


def render(template, saltenv="base", sls="", salt_data=True, tmplpath=None, **kwargs):
    common = names_of(sls)
    if not salt_data:
        return common
    Map.__salt__ = __salt__
    Registry.empty()
    Registry.enabled = True
    text = template.read() if hasattr(template, "read") else template
    executed(text, tmplpath or sls, common, saltenv)
    return Registry.salt_data()
