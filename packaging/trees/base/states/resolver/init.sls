# A cache of DNS answers for this host alone.
{% import_yaml 'resolver/defaults.yaml' as defaults %}
{% set resolver = salt['pillar.get']('resolver', defaults, merge=true) %}
unbound:
  pkg.installed: []
  service.running:
    - enable: true
    - reload: true
    - require:
      - pkg: unbound
    - watch:
      - file: /etc/unbound/unbound.conf.d/corpus.conf

/etc/unbound/unbound.conf.d/corpus.conf:
  file.managed:
    - source: salt://resolver/unbound.conf.jinja
    - template: jinja
    - context:
        resolver: {{ resolver | json }}
    - mode: '0644'
    - check_cmd: unbound-checkconf
    - require:
      - pkg: unbound

{% if resolver.resolv_conf %}
/etc/resolv.conf:
  file.managed:
    - contents: |
        nameserver 127.0.0.1
        {%- if resolver.search %}
        search {{ resolver.search | join(' ') }}
        {%- endif %}
    - follow_symlinks: false
    - mode: '0644'
    - require:
      - service: unbound
{% endif %}
