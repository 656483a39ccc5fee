from salt.utils.yaml import SaltYamlSafeLoader, load


def get_yaml_loader(argline):
    return SaltYamlSafeLoader


def render(yaml_data, saltenv="base", sls="", argline="", **kwargs):
    return load(yaml_data) or {}
