"""Templates of Wempy, where the host has its package."""


def render(template, saltenv="base", sls="", context=None, tmplpath=None, **kwargs):
    try:
        from wemplate.wemplate import TemplateParser
    except ImportError:
        raise ImportError("the host has no Python package wemplate, which this file is written for: write the file with "
                          "Jinja")
    text = template.read() if hasattr(template, "read") else template
    if text.startswith("#!"):
        text = "\n" + text.partition("\n")[2]
    names = dict(kwargs, salt=__salt__, grains=__grains__, pillar=__pillar__, opts=__opts__, saltenv=saltenv,
                 env=saltenv, sls=sls)
    names.update(context or {})
    return TemplateParser(text).render(**names)
