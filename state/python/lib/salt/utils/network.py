import ipaddress
import os
import re
import socket
import sys


def _salt(name, *args, **kwargs):
    return sys.modules["__main__"].SALT[name](*args, **kwargs)


def interfaces():
    return _salt("network.interfaces")


def ip_addrs(interface=None, include_loopback=False, interface_data=None, **kwargs):
    return _salt("network.ip_addrs", interface=interface, include_loopback=include_loopback)


def ip_addrs6(interface=None, include_loopback=False, interface_data=None, **kwargs):
    return _salt("network.ip_addrs6", interface=interface, include_loopback=include_loopback)


def subnets(interfaces=None):
    return _salt("network.subnets", interfaces)


def hw_addr(iface):
    return _salt("network.hw_addr", iface)


def interface_ip(iface):
    return _salt("network.interface_ip", iface)


def get_fqhostname():
    return socket.getfqdn()


def get_socket(addr, type=socket.SOCK_STREAM, proto=0):
    version = ipaddress.ip_address(addr.strip("[]")).version
    return socket.socket(socket.AF_INET if version == 4 else socket.AF_INET6, type, proto)


def host_to_ips(host):
    try:
        found = {info[4][0] for info in socket.getaddrinfo(host, 0, socket.AF_UNSPEC, socket.SOCK_STREAM)}
    except OSError:
        return None
    return sorted(found) or None


def is_ip(ip_addr):
    try:
        ipaddress.ip_address(ip_addr)
        return True
    except ValueError:
        return False


def is_ipv4(ip_addr):
    return is_ip(ip_addr) and ipaddress.ip_address(ip_addr).version == 4


def is_ipv6(ip_addr):
    return is_ip(ip_addr) and ipaddress.ip_address(ip_addr).version == 6


is_ipv4_filter = is_ipv4
is_ipv6_filter = is_ipv6


def is_subnet(cidr):
    try:
        ipaddress.ip_network(cidr)
        return "/" in cidr
    except ValueError:
        return False


is_ipv4_subnet = is_ipv6_subnet = is_subnet


def in_subnet(cidr, addr=None):
    net = ipaddress.ip_network(cidr)
    return any(ipaddress.ip_address(a) in net for a in ([addr] if isinstance(addr, str) else addr or ip_addrs()))


def natural_ipv4_netmask(ip, fmt="prefixlen"):
    first = int(ip.split(".")[0])
    bits = 8 if first < 128 else 16 if first < 192 else 24
    return "/{}".format(bits) if fmt == "prefixlen" else str(ipaddress.ip_network("0.0.0.0/{}".format(bits)).netmask)


def get_net_size(mask):
    return len("".join(bin(int(octet))[2:].zfill(8) for octet in mask.split(".")).rstrip("0"))


def cidr_to_ipv4_netmask(cidr_bits):
    try:
        return str(ipaddress.ip_network("0.0.0.0/{}".format(int(cidr_bits))).netmask)
    except ValueError:
        return ""


def calc_net(ip_addr, netmask=None):
    return str(ipaddress.ip_interface("{}/{}".format(ip_addr, netmask) if netmask else ip_addr).network)


def ip_bracket(addr, strip=False):
    addr = str(addr).strip("[]")
    return addr if strip or ":" not in addr else "[{}]".format(addr)


def mac_str_to_bytes(mac_str):
    return bytes(int(part, 16) for part in re.findall("..", re.sub("[^0-9a-fA-F]", "", mac_str)))


def is_loopback(ip_addr):
    return is_ip(ip_addr) and ipaddress.ip_address(ip_addr).is_loopback


def is_reachable_host(entity_name):
    try:
        return bool(socket.getaddrinfo(entity_name, 0))
    except OSError:
        return False


def sanitize_host(host, underscore_ok=False):
    return re.sub("[^a-zA-Z0-9-%s.]" % ("_" if underscore_ok else ""), "", host).rstrip(".")


def get_hostname():
    return os.uname()[1]


def parse_host_port(host_port):
    m = re.match(r"^\[?(.*?)\]?(?::(\d+))?$", host_port)
    return m.group(1), int(m.group(2)) if m.group(2) else None
