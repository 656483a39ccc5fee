# A node lets in SSH, HTTP, HTTPS, the SSH ports of its guests, DNS and LDAP if it serves them, and nothing else. No port of a guest is reached but
# through the proxy; guests reach the outside. On a node that is shared with other purposes (pillar node:shared) only the guests are
# restricted, by a unit of its own: its /etc/nftables.conf is not changed.
{% import_yaml 'cloud.yaml' as cloud %}
{% set node = cloud.get('nodes', {}).get(grains.get('service_node')) %}
{% set shared = salt['pillar.get']('node:shared', false) %}
{% if node %}
nftables:
  pkg.installed: []
{% if not shared %}
  service.running:
    - enable: true
    - reload: true
    - require:
      - pkg: nftables
    - watch:
      - file: /etc/nftables.conf
{% endif %}
{% endif %}

{% if node and shared %}
/etc/corpus-guests.nft:
  file.managed:
    - source: salt://shared.nft.jinja
    - template: jinja
    - mode: '0644'
    - check_cmd: nft -c -f
    - require:
      - pkg: nftables

/etc/systemd/system/corpus-guests-firewall.service:
  file.managed:
    - mode: '0644'
    - contents: |
        [Unit]
        Description=Packet filter of the guests of this node
        After=nftables.service

        [Service]
        Type=oneshot
        RemainAfterExit=yes
        ExecStart=/usr/sbin/nft -f /etc/corpus-guests.nft
        ExecReload=/usr/sbin/nft -f /etc/corpus-guests.nft
        ExecStop=/usr/sbin/nft delete table inet guests
        ExecStop=/usr/sbin/nft delete table bridge guests

        [Install]
        WantedBy=multi-user.target

corpus-guests-firewall:
  service.running:
    - enable: true
    - reload: true
    - require:
      - file: /etc/systemd/system/corpus-guests-firewall.service
    - watch:
      - file: /etc/corpus-guests.nft
{% elif node %}
/etc/nftables.conf:
  file.managed:
    - source: salt://nftables.conf.jinja
    - template: jinja
    - mode: '0755'
    - check_cmd: nft -c -f
    - require:
      - pkg: nftables
{% endif %}
