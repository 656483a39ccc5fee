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

# The ports of guests of LXC, and of those of nspawn whose names are too long for the name of an interface.
/etc/systemd/network/40-guests-ports.network:
  file.managed:
    - contents: |
        [Match]
        Name=vb-[0-9]*
        Driver=veth

        [Network]
        Bridge=guests
        LinkLocalAddressing=no

        [Link]
        RequiredForOnline=no

# Where networkd manages no other network, as with ifupdown, nothing at boot waits for it to be online.
/etc/systemd/system/systemd-networkd-wait-online.service.d/corpus.conf:
  file.managed:
    - makedirs: true
    - mode: '0644'
    - contents: |
        [Service]
        ExecCondition=/bin/sh -c 'ls /etc/systemd/network /run/systemd/network | grep -v ^40-guests | grep -q [.]network'

systemd-networkd:
  service.running:
    - enable: true
    - watch:
      - file: /etc/systemd/network/40-guests.netdev
      - file: /etc/systemd/network/40-guests.network
      - file: /etc/systemd/network/40-guests-ports.network

# A bridge that was removed is made again, and guests that run are joined to it.
{% if salt['file.file_exists']('/etc/systemd/network/40-guests.netdev') and not salt['file.directory_exists']('/sys/class/net/guests') %}
the bridge is missing:
  cmd.run:
    - name: |
        systemctl restart systemd-networkd
        for i in $(seq 100); do test -d /sys/class/net/guests && break; sleep 0.1; done
        for one in /sys/class/net/vb-*; do
          test ! -e "$one" || ip link set "${one##*/}" master guests
        done
        test -d /sys/class/net/guests
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
