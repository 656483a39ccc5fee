"""The classes of SLS files that begin with #!pyobjects: states, requisites and maps of data by grain."""
import collections
import inspect

KINDS = ("listen", "onchanges", "onfail", "require", "watch", "use")
REQUISITES = KINDS + tuple(kind + "_in" for kind in KINDS) + ("prereq", "prereq_in", "onfail_any", "require_any")


class StateException(Exception):
    """What is wrong with a state."""


class DuplicateState(StateException):
    """An ID has a function twice."""


class InvalidFunction(StateException):
    """There is no such state function."""


class Registry:
    """What a file has declared so far."""

    states = collections.OrderedDict()
    extends = collections.OrderedDict()
    includes = []
    requisites = []
    enabled = True

    @classmethod
    def empty(cls):
        cls.states, cls.extends = collections.OrderedDict(), collections.OrderedDict()
        cls.includes, cls.requisites = [], []

    @classmethod
    def include(cls, *names):
        if cls.enabled:
            cls.includes.extend(names)

    @classmethod
    def salt_data(cls):
        data = collections.OrderedDict(cls.states)
        if cls.includes:
            data["include"] = list(cls.includes)
        if cls.extends:
            data["extend"] = cls.extends
        cls.empty()
        return data

    @classmethod
    def add(cls, id_, state, extend=False):
        if not cls.enabled:
            return
        declared = (cls.extends if extend else cls.states).setdefault(id_, collections.OrderedDict())
        if state.full_func in declared:
            raise DuplicateState("the ID %s has the state %s twice" % (id_, state.full_func))
        for outer in cls.requisites:
            state.kwargs.setdefault(outer.requisite, []).append(outer())
        declared.update(state())

    @classmethod
    def extend(cls, id_, state):
        cls.add(id_, state, extend=True)

    @classmethod
    def make_extend(cls, name):
        return StateExtend(name)

    @classmethod
    def push_requisite(cls, requisite):
        if cls.enabled:
            cls.requisites.append(requisite)

    @classmethod
    def pop_requisite(cls):
        if cls.enabled:
            cls.requisites.pop()


class StateExtend:
    """The ID of another file's state, which a state extends."""

    def __init__(self, name):
        self.name = name


class StateRequisite:
    """A state that others require, by a call, or within a block."""

    def __init__(self, requisite, module, id_):
        self.requisite, self.module, self.id_ = requisite, module, id_

    def __call__(self):
        return {self.module: self.id_}

    def __enter__(self):
        Registry.push_requisite(self)

    def __exit__(self, kind, value, traceback):
        Registry.pop_requisite()


class StateFactory:
    """The functions of a state module, such as File.managed; a call, as in File("/etc/x"), is a requisite."""

    def __init__(self, module, valid_funcs=None):
        self.module, self.valid_funcs = module, valid_funcs or []

    def __getattr__(self, func):
        if self.valid_funcs and func not in self.valid_funcs:
            raise InvalidFunction("there is no state function %s.%s" % (self.module, func))
        return lambda id_, **kwargs: State(id_, self.module, func, **kwargs)

    def __call__(self, id_, requisite="require"):
        return StateRequisite(requisite, self.module, id_)


class State:
    """One declared state. As a block, it is required by the states in it."""

    def __init__(self, id_, module, func, **kwargs):
        self.module, self.func, self.kwargs = module, func, kwargs
        for name in REQUISITES:
            if name in kwargs:
                given = kwargs[name]
                kwargs[name] = list(given) if hasattr(given, "__iter__") and not isinstance(given, dict) else [given]
        extends = isinstance(id_, StateExtend)
        self.id_ = id_.name if extends else id_
        Registry.add(self.id_, self, extend=extends)
        self.requisite = StateRequisite("require", module, self.id_)

    @property
    def attrs(self):
        for name in REQUISITES:
            if name in self.kwargs:
                self.kwargs[name] = [r() if isinstance(r, StateRequisite) else r for r in self.kwargs[name]]
        return [{name: self.kwargs[name]} for name in sorted(self.kwargs)]

    @property
    def full_func(self):
        return "%s.%s" % (self.module, self.func)

    def __call__(self):
        return {self.full_func: self.attrs}

    def __enter__(self):
        Registry.push_requisite(self.requisite)

    def __exit__(self, kind, value, traceback):
        Registry.pop_requisite()


class SaltObject:
    """Functions by attribute, as in salt.cmd.run."""

    def __init__(self, functions):
        self._functions = functions

    def __getitem__(self, name):
        return self._functions[name]

    def __getattr__(self, module):
        return getattr(self._functions, module)


class MapMeta(type):
    """Makes the attributes of a map those of its classes whose grain matches."""

    @classmethod
    def __prepare__(metacls, name, bases):
        return collections.OrderedDict()

    def __init__(cls, name, bases, attributes):
        super().__init__(name, bases, attributes)
        choices = []
        for item, choice in attributes.items():
            if not item.startswith("_") and inspect.isclass(choice):
                values = {k: v for k, v in vars(choice).items() if not k.startswith("_")}
                choices.append((getattr(choice, "__grain__", "os_family"), getattr(choice, "__match__", item), values))
        first = list(getattr(cls, "priority", ()))
        choices.sort(key=lambda c: first.index(c[0]) if c[0] in first else len(first))
        for grain, match, values in choices:
            if cls.__salt__["grains.get"](grain, None) == match:
                for k, v in values.items():
                    setattr(cls, k, v)
        if hasattr(cls, "merge"):
            for k, v in (cls.__salt__["pillar.get"](cls.merge) or {}).items():
                setattr(cls, k, v)


class Map(metaclass=MapMeta):
    """Data that is different by grain, over which that of the pillar is merged."""

    __salt__ = {}
