# The firewall is closed, except for what the pillar opens. It has a table of its own and leaves others alone.
{% import_yaml 'nftables/defaults.yaml' as defaults %}
{% set nftables = salt['pillar.get']('nftables', defaults, merge=true) %}
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
    - source: salt://nftables/nftables.conf.jinja
    - template: jinja
    - context:
        nftables: {{ nftables | json }}
    - mode: '0755'
    - check_cmd: nft -c -f
    - require:
      - pkg: nftables
