# The bridge of a node's guests, with the first address of each of its networks.
{% import_yaml 'cloud.yaml' as cloud %}
{% set node = cloud.get('nodes', {}).get(grains.get('service_node')) %}
{% if node %}
{% set net4 = node.range4.split('/') %}
{% set parts = net4[0].split('.') %}
{% set net6 = node.range6.split('/') %}
/etc/systemd/network/40-guests.netdev:
  file.managed:
    - contents: |
        [NetDev]
        Name=guests
        Kind=bridge

/etc/systemd/network/40-guests.network:
  file.managed:
    - contents: |
        [Match]
        Name=guests

        [Network]
        Address={{ parts[:3] | join('.') }}.{{ parts[3] | int + 1 }}/{{ net4[1] }}
        Address={{ net6[0] if net6[0].endswith('::') else net6[0][:-1] }}1/{{ net6[1] }}
        ConfigureWithoutCarrier=yes
        IPv6AcceptRA=no
        LinkLocalAddressing=ipv6

        [Link]
        RequiredForOnline=no

# Guests whose bridge was made again, as after a person had removed it, are joined to it.
/etc/systemd/network/41-guests.network:
  file.managed:
    - contents: |
        [Match]
        Name=vb-*
        Kind=veth

        [Network]
        Bridge=guests
        LinkLocalAddressing=no

        [Link]
        RequiredForOnline=no

systemd-networkd:
  service.running:
    - enable: true
    - watch:
      - file: /etc/systemd/network/40-guests.netdev
      - file: /etc/systemd/network/40-guests.network
      - file: /etc/systemd/network/41-guests.network

{% if salt['file.file_exists']('/etc/systemd/network/40-guests.netdev') and not salt['file.directory_exists']('/sys/class/net/guests') %}
the bridge is missing:
  cmd.run:
    - name: systemctl restart systemd-networkd
    - require:
      - service: systemd-networkd
{% endif %}

net.ipv4.ip_forward:
  sysctl.present:
    - value: 1

net.ipv6.conf.all.forwarding:
  sysctl.present:
    - value: 1
{% endif %}
