DEFAULT_TARGET_DELIM = ":"


class _NotSet:
    def __bool__(self):
        return False

    __nonzero__ = __bool__

    def __repr__(self):
        return "<not set>"


NOT_SET = _NotSet()
