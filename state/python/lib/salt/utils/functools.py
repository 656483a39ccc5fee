import types


def namespaced_function(function, global_dict, defaults=None, preserve_context=None):
    """A function with the globals of another module."""
    scope = dict(function.__globals__)
    scope.update(global_dict)
    made = types.FunctionType(function.__code__, scope, name=function.__name__,
                              argdefs=defaults or function.__defaults__, closure=function.__closure__)
    made.__dict__.update(function.__dict__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def alias_function(fun, name, doc=None):
    alias = types.FunctionType(fun.__code__, fun.__globals__, str(name), fun.__defaults__, fun.__closure__)
    alias.__dict__.update(fun.__dict__)
    alias.__doc__ = doc or "\nThis function is an alias of ``{}``.\n{}".format(fun.__name__, fun.__doc__ or "")
    return alias


def call_function(salt_function, *args, **kwargs):
    return salt_function(*args, **kwargs)
