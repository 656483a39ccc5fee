class SerializationError(Exception):
    """A value was not written."""


class DeserializationError(Exception):
    """A text was not read."""
