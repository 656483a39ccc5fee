import ipaddress
import subprocess
import xml.etree.ElementTree as ElementTree

__all__ = ["ElementTree", "ipaddress", "subprocess"]
