"""As far as it can be: the tables of functions that this run has."""
import sys


def _main():
    return sys.modules["__main__"]


def minion_mods(opts=None, *args, **kwargs):
    return _main().SALT


def utils(opts=None, *args, **kwargs):
    return _main().UTILS


def states(opts=None, *args, **kwargs):
    return _main().STATES


def grains(opts=None, *args, **kwargs):
    return dict(_main().WORLD.grains)


def raw_mod(opts, name, functions, mod="modules"):
    loader = _main().LOADERS[mod]
    return {full: loader.find(full) for full in loader.names() if full.partition(".")[0] == name}


def __getattr__(name):
    if name == "LazyLoader":  # the class of __salt__, which modules ask for
        return _main().Table
    raise AttributeError("module salt.loader has no attribute " + name)
