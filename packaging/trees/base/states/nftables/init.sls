# The firewall is closed, except for what the pillar opens. It has a table of its own and leaves others alone.
{% import_yaml 'nftables/defaults.yaml' as defaults %}
{% set nftables = salt['pillar.get']('nftables', defaults, merge=true) %}
{% for key in nftables if key not in defaults %}{{ raise('nftables has no key ' ~ key) }}{% endfor %}
{# A rule that lost its ports must not open all of them. #}
{% for rule in nftables.allow %}
{% for key in rule if key not in ['from', 'tcp', 'udp', 'all'] %}{{ raise('nftables:allow has no key ' ~ key) }}{% endfor %}
{% if not rule.get('from') %}{{ raise('a rule of nftables:allow lacks from: the address or network that it is for') }}{% endif %}
{% set some = rule.get('tcp') or rule.get('udp') %}
{% if rule.get('all', false) is not sameas (not some) %}
{{ raise('nftables:allow needs tcp or udp for ' ~ rule.from ~ ', or all: true alone, which opens every port') }}
{% endif %}
{% endfor %}
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
