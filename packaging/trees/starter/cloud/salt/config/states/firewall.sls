# A node lets in SSH, HTTP, HTTPS, the SSH ports of its guests, DNS and LDAP if it serves them, and nothing else. No port of a guest is reached but
# through the proxy; guests reach the outside.
{% import_yaml 'cloud.yaml' as cloud %}
{% set node = cloud.get('nodes', {}).get(grains.get('service_node')) %}
{% if node %}
nftables:
  pkg.installed: []
  service.running:
    - enable: true
    - reload: true
    - require:
      - pkg: nftables
    - watch:
      - file: /etc/nftables.conf

/etc/nftables.conf:
  file.managed:
    - source: salt://nftables.conf.jinja
    - template: jinja
    - mode: '0755'
    - check_cmd: nft -c -f
    - require:
      - pkg: nftables
{% endif %}
