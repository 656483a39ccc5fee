import builtins
import functools
import io
import itertools
import shlex

range, map, zip, filter, input = builtins.range, builtins.map, builtins.zip, builtins.filter, builtins.input
xrange, reduce, StringIO, cStringIO = range, functools.reduce, io.StringIO, io.StringIO
zip_longest, filterfalse, shlex_quote = itertools.zip_longest, itertools.filterfalse, shlex.quote
intern, reload_module = __import__("sys").intern, __import__("importlib").reload

_MODULES = {"builtins": "builtins", "configparser": "configparser", "copyreg": "copyreg", "cPickle": "pickle",
            "http_client": "http.client", "http_cookies": "http.cookies", "http_cookiejar": "http.cookiejar",
            "html_entities": "html.entities", "html_parser": "html.parser", "queue": "queue", "socketserver": "socketserver",
            "BaseHTTPServer": "http.server", "SimpleHTTPServer": "http.server", "reprlib": "reprlib",
            "xmlrpc_client": "xmlrpc.client", "xmlrpc_server": "xmlrpc.server", "_thread": "_thread",
            "email_mime_text": "email.mime.text", "email_mime_base": "email.mime.base",
            "email_mime_multipart": "email.mime.multipart", "urllib": "salt.ext.six.moves.urllib",
            "urllib_parse": "urllib.parse", "urllib_error": "urllib.error"}


def __getattr__(name):
    if name not in _MODULES:
        raise AttributeError(name)
    import importlib
    return importlib.import_module(_MODULES[name])
