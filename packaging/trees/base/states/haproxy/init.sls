# haproxy with the sections of the pillar. A reload drops no connection.
{% import_yaml 'haproxy/defaults.yaml' as defaults %}
{% set haproxy = salt['pillar.get']('haproxy', defaults, merge=true) %}
haproxy:
  pkg.installed: []
  service.running:
    - enable: true
    - reload: true
    - require:
      - pkg: haproxy
    - watch:
      - file: /etc/haproxy/haproxy.cfg

/etc/haproxy/haproxy.cfg:
  file.managed:
    - source: salt://haproxy/haproxy.cfg.jinja
    - template: jinja
    - context:
        haproxy: {{ haproxy | json }}
    - mode: '0640'
    - group: haproxy
    - check_cmd: haproxy -c -f
    - require:
      - pkg: haproxy
