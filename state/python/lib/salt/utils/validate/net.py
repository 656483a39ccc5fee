import ipaddress
import re


def mac(addr):
    return re.match(r"^([0-9a-fA-F]{2}[:-]?){5}[0-9a-fA-F]{2}$", addr) is not None


def _address(addr, version):
    text, _, prefix = str(addr).partition("/")
    try:
        return ipaddress.ip_interface(str(addr)).version == version
    except ValueError:
        return False


def ipv4_addr(addr):
    return _address(addr, 4)


def ipv6_addr(addr):
    return _address(addr, 6)


def ip_addr(addr):
    return ipv4_addr(addr) or ipv6_addr(addr)


def netmask(mask):
    try:
        ipaddress.ip_network("0.0.0.0/%s" % mask)
        return "." in str(mask)
    except ValueError:
        return False
