import os
import sys


def wrap_tmpl_func(render_str):
    return render_str


def render_jinja_tmpl(tmplstr, context, tmplpath=None):
    """Renders Jinja by the agent."""
    return sys.modules["__main__"].LINE.ask("jinja", text=tmplstr, vars={
        k: v for k, v in context.items() if k not in ("salt", "grains", "pillar", "opts") and not k.startswith("__")},
        path=tmplpath or "template", env=context.get("saltenv", "base"))


def _jinja(tmplsrc, from_str=False, to_str=False, context=None, **kwargs):
    text = tmplsrc
    if not from_str:
        text = sys.modules["__main__"].LINE.ask("import", url=os.path.abspath(tmplsrc), env="base")
        if not isinstance(text, str):
            raise FileNotFoundError("there is no file %s" % tmplsrc)
    return {"result": True, "data": render_jinja_tmpl(text, dict(context or {}, **kwargs))}


JINJA = _jinja
TEMPLATE_REGISTRY = {"jinja": _jinja}
