import builtins


def raise_error(name=None, args=None, message=""):
    import salt.exceptions
    kind = getattr(salt.exceptions, name or "", getattr(builtins, name or "Exception", Exception))
    raise kind(*args) if args is not None else kind(message)


def pack_exception(exc):
    return {"message": str(exc), "args": exc.args}
