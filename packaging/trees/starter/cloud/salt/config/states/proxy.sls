# haproxy leads HTTP and HTTPS to guests by name, and one port of the node to the SSH of each guest. A node that is shared with other
# purposes, such as a developer's machine (pillar node:shared), has none: its guests are reached from it, by their own addresses.
{% import_yaml 'cloud.yaml' as cloud %}
{% set node = cloud.get('nodes', {}).get(grains.get('service_node')) %}
{% if node and not salt['pillar.get']('node:shared', false) %}
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
    - source: salt://haproxy.cfg.jinja
    - template: jinja
    - mode: '0644'
    - check_cmd: haproxy -c -f
    - require:
      - pkg: haproxy
{% endif %}
