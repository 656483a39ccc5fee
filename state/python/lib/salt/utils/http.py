import sys


def query(url, method="GET", **kwargs):
    kwargs = {k: v for k, v in kwargs.items() if k not in ("opts", "backend")}
    return sys.modules["__main__"].SALT["http.query"](url, method=method, **kwargs)
