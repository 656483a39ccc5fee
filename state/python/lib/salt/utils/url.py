from urllib.parse import urlparse, urlunparse


def create(path, saltenv=None):
    return "salt://{}{}".format(path.lstrip("/"), "?saltenv={}".format(saltenv) if saltenv else "")


def parse(url):
    if not url.startswith("salt://"):
        return url, None
    path, _, query = url[len("salt://"):].partition("?")
    saltenv = query.partition("saltenv=")[2] or None
    return path, saltenv


def validate(url, protos):
    return urlparse(url).scheme in protos


def is_escaped(url):
    return "|" in parse(url)[0][:1]


def redact_http_basic_auth(data):
    import re
    return re.sub(r"(https?)://.*@", r"\1://<redacted>@", data)


def add_http_basic_auth(url, user=None, password=None, https_only=False):
    if user is None and password is None:
        return url
    parts = urlparse(url)
    login = user if password is None else "{}:{}".format(user, password)
    return urlunparse(parts._replace(netloc="{}@{}".format(login, parts.netloc.rpartition("@")[2])))


def strip_proto(url):
    return url.partition("://")[2] or url


def split_env(url):
    if not url.startswith("salt://"):
        return url, None
    path, saltenv = parse(url)
    return create(path), saltenv


def add_env(url, saltenv):
    return create(parse(url)[0], saltenv) if url.startswith("salt://") else url


def escape(url):
    if not url.startswith("salt://"):
        return url
    path, saltenv = parse(url)
    return url if path.startswith("|") else create("|" + path, saltenv)


def unescape(url):
    if not url.startswith("salt://"):
        return url
    path, saltenv = parse(url)
    return create(path.lstrip("|"), saltenv)
