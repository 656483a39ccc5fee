"""What modules of Salt trees import, in the words of Salt. It is not Salt: docs/python.md lists what is here."""


def __getattr__(name):
    import importlib
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        return importlib.import_module("salt." + name)
    except ImportError as e:
        raise AttributeError(str(e))
