"""Templates of Mako, where the host has its package."""


def render(template, saltenv="base", sls="", context=None, tmplpath=None, **kwargs):
    try:
        from mako.template import Template
    except ImportError:
        raise ImportError("the host has no Python package mako, which this file is written for: install python3-mako, or write "
                          "the file with Jinja")
    text = template.read() if hasattr(template, "read") else template
    if text.startswith("#!"):
        text = "\n" + text.partition("\n")[2]
    names = dict(kwargs, salt=__salt__, grains=__grains__, pillar=__pillar__, opts=__opts__, saltenv=saltenv, env=saltenv, sls=sls)
    names.update(context or {})
    return Template(text, strict_undefined=True).render(**names)
