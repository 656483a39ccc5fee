class SaltStackVersion:
    """The version that modules may compare with: the behaviour that is aimed at is Salt 3006's."""

    def __init__(self, major=3006, minor=0, *more):
        self.info = (int(major), int(minor or 0))
        self.major, self.minor, self.string = self.info[0], self.info[1], "%d.%d" % self.info

    @classmethod
    def from_name(cls, name):
        years = {"boron": 2016, "carbon": 2016, "nitrogen": 2017, "oxygen": 2018, "fluorine": 2019, "neon": 3000,
                 "sodium": 3001, "magnesium": 3002, "aluminium": 3003, "silicon": 3004, "phosphorus": 3005,
                 "sulfur": 3006, "chlorine": 3007, "argon": 3008, "potassium": 3009}
        return cls(years[name.lower()])

    @classmethod
    def parse(cls, text):
        words = str(text).lstrip("v").split(".")
        return cls(*[int(w) for w in words[:2] if w.isdigit()])

    def __str__(self):
        return self.string

    def __lt__(self, other):
        return self.info < getattr(other, "info", (0,))

    def __le__(self, other):
        return self.info <= getattr(other, "info", (0,))

    def __gt__(self, other):
        return self.info > getattr(other, "info", (0,))

    def __ge__(self, other):
        return self.info >= getattr(other, "info", (0,))

    def __eq__(self, other):
        return self.info == getattr(other, "info", None)

    def __hash__(self):
        return hash(self.info)


__version__ = "3006.0"
__version_info__ = (3006, 0)
__saltstack_version__ = SaltStackVersion()
