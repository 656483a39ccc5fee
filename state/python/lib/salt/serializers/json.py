import json as _json

available = True


def serialize(obj, **options):
    return _json.dumps(obj, **options)


def deserialize(stream_or_string, **options):
    if hasattr(stream_or_string, "read"):
        return _json.load(stream_or_string, **options)
    return _json.loads(stream_or_string, **options)
