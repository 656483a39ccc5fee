"""Renders templates with Jinja2, as Salt sets it up, and tells what came out.

stdin: {"vars": {...}, "files": {...}, "templates": [...]}
stdout: [{"out": text} | {"kind": class, "line": line, "why": message} | {"skip": reason}, ...]
"""
import functools
import json
import signal
import sys
import traceback

import jinja2
import jinja2.sandbox

signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError()))
task = json.load(sys.stdin)
env = jinja2.sandbox.SandboxedEnvironment(
    loader=jinja2.DictLoader(task["files"]), undefined=jinja2.StrictUndefined,
    extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"])


def plainly(filter):
    """What escapes gives a string, not a Markup, which would escape whatever it is put together with."""
    @functools.wraps(filter)
    def wrapped(*args, **kwargs):
        v = filter(*args, **kwargs)
        return str(v) if isinstance(v, str) else v
    return wrapped


for name in "e escape forceescape safe tojson urlize xmlattr".split():
    env.filters[name] = plainly(env.filters[name])


def line_of(error):
    if isinstance(error, jinja2.TemplateSyntaxError):
        return error.lineno
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__)
             if f.filename == "<template>" or f.filename in task["files"]]
    return lines[-1] if lines else 0


def render(text):
    signal.alarm(2)
    try:
        variables = json.loads(json.dumps(task["vars"]))
        template = env.from_string(text)
        template.globals.update(variables)
        return {"out": template.render(variables)}
    except (TimeoutError, MemoryError, RecursionError) as e:
        return {"skip": repr(e)}
    except Exception as e:
        return {"kind": type(e).__name__, "line": line_of(e), "why": str(e)[:300]}
    finally:
        signal.alarm(0)


json.dump([render(t) for t in task["templates"]], sys.stdout)
