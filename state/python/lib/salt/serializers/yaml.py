import salt.utils.yaml

available = True


def serialize(obj, **options):
    return salt.utils.yaml.safe_dump(obj, **options)


def deserialize(stream_or_string, **options):
    return salt.utils.yaml.safe_load(stream_or_string)
