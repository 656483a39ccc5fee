"""SLS files in Python that begin with #!pydsl: objects for declarations, which are made by calls."""
import collections

REQUISITES = frozenset(kind + end for kind in ("listen", "require", "watch", "prereq", "use", "onchanges", "onfail")
                       for end in ("", "_in"))


class PyDslError(Exception):
    """What is wrong with a declaration."""


class Function:
    """A function of a state module with its arguments."""

    def __init__(self, module, name):
        self._module, self._name, self._arguments = module, name, collections.OrderedDict()
        module._state._file.created(self)

    def __call__(self, *args, **kwargs):
        if args and callable(args[0]):
            if self._module._name != "cmd" or self._name not in ("call", "wait_call"):
                raise PyDslError("%s.%s of %s gets a Python function, which only cmd.call and cmd.wait_call take" % (
                    self._module._name, self._name, self._module._state))
            function = args[0]
            args, kwargs = (function.__name__,), {"func": function, "args": list(args[1:]), "kws": kwargs}
        if len(args) > 1:
            raise PyDslError("%s.%s of %s takes one argument without a name" % (
                self._module._name, self._name, self._module._state))
        if args:
            self._arguments["name"] = args[0]
        self._arguments.update(kwargs)
        return self

    def __getattr__(self, name):
        if name not in REQUISITES:
            raise AttributeError("a state function has no %s: it has %s" % (name, ", ".join(sorted(REQUISITES))))
        return lambda *modules, **names: self._refer(name, modules, names)

    def _refer(self, kind, modules, names):
        references = self._arguments.setdefault(kind, [])
        for module in modules:
            module = module._module if isinstance(module, Function) else module
            if not isinstance(module, Module):
                raise PyDslError("%s of %s refers to %r, which is no state with a module" % (
                    kind, self._module._state, module))
            references.append({module._name: str(module._state)})
        references.extend({module: str(names[module])} for module in names)
        return self

    def _data(self, extending):
        if self._name is None and not extending:
            raise PyDslError("%s of %s has no function" % (self._module._name, self._module._state))
        arguments = [{key: value} for key, value in self._arguments.items()]
        return ([] if self._name is None else [self._name]) + arguments


class Module:
    """A state module of an ID. It has one function."""

    def __init__(self, state, name):
        self._state, self._name, self._function = state, name, None

    def __getattr__(self, name):
        if self._function is None:
            self._function = Function(self, None if name in REQUISITES else name)
        elif name not in REQUISITES and self._function._name is None:
            self._function._name = name
        if name in REQUISITES:
            return getattr(self._function, name)
        if self._function._name != name:
            raise PyDslError("%s of %s has the function %s, and gets %s" % (
                self._name, self._state, self._function._name, name))
        return self._function

    def __call__(self, function, *args, **kwargs):
        return getattr(self, function)(*args, **kwargs)


class State:
    """The declaration of an ID."""

    def __init__(self, file, name):
        self._file, self._id, self._modules = file, name, collections.OrderedDict()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self._modules:
            self._modules[name] = Module(self, name)
        return self._modules[name]

    __getitem__ = __getattr__

    def __str__(self):
        return self._id

    def __call__(self, *args, **kwargs):
        raise PyDslError("%s is called, which runs it while the file is rendered: rendering changes nothing" % self._id)

    def _data(self, extending=False):
        for module in self._modules.values():
            if module._function is None:
                raise PyDslError("%s of %s has no function" % (module._name, self._id))
        return collections.OrderedDict((m._name, m._function._data(extending)) for m in self._modules.values())


class File:
    """What an SLS file has declared so far: the object __pydsl__."""

    def __init__(self, sls, saltenv):
        self.name, self.saltenv = sls, saltenv
        self._states, self._extended, self._includes = collections.OrderedDict(), [], []
        self._ordered, self._last, self._unnamed = False, None, 0

    def set(self, ordered=False):
        self._ordered = ordered

    def created(self, function):
        if self._ordered:
            if self._last is not None:
                function._refer("require", [self._last], {})
            self._last = function

    def state(self, id=None):
        if id is None:
            self._unnamed += 1
            id = "pydsl_%s_%d" % (self.name, self._unnamed)
        return self._states.setdefault(id, State(self, id))

    def include(self, *files, **kwargs):
        self._includes.extend({kwargs.get("saltenv", self.saltenv): name} for name in files)

    def extend(self, *functions):
        if self._ordered:
            raise PyDslError("extend comes after __pydsl__.set(ordered=True), and has to come before it")
        for function in functions:
            state = function if isinstance(function, State) else function._module._state
            self._extended.append(self._states.pop(str(state), state))

    def data(self):
        data = collections.OrderedDict()
        if self._includes:
            data["include"] = self._includes
        if self._extended:
            data["extend"] = collections.OrderedDict((str(s), s._data(True)) for s in self._extended)
        data.update((name, state._data()) for name, state in self._states.items())
        return data


def render(template, saltenv="base", sls="", tmplpath=None, **kwargs):
    text = template.read() if hasattr(template, "read") else template
    file = File(sls, saltenv)
    names = dict(kwargs, __pydsl__=file, state=file.state, include=file.include, extend=file.extend, __salt__=__salt__,
                 __grains__=__grains__, __pillar__=__pillar__, __opts__=__opts__, __env__=saltenv, __sls__=sls,
                 __file__=tmplpath, __name__=sls)
    exec(compile(text, tmplpath or sls, "exec", dont_inherit=True), names)
    return file.data()
