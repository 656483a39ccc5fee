import sys


def is_linux():
    return sys.platform.startswith("linux")


def _no():
    return False


is_windows = is_darwin = is_sunos = is_smartos = is_smartos_globalzone = is_smartos_zone = is_freebsd = is_netbsd = _no
is_openbsd = is_aix = is_junos = is_photonos = _no


def is_proxy():
    return False


def _release(name):
    try:
        with open("/etc/os-release") as f:
            return ("ID=" + name) in f.read().replace('"', "").splitlines()
    except OSError:
        return False


def is_fedora():
    return _release("fedora")


def is_arch():
    return _release("arch")


def linux_distribution(full_distribution_name=True):
    with open("/etc/os-release") as f:
        words = dict(line.rstrip().replace('"', "").partition("=")[::2] for line in f if "=" in line)
    return words.get("NAME" if full_distribution_name else "ID", ""), words.get("VERSION_ID", ""), words.get(
        "VERSION_CODENAME", "")
