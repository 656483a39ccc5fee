# DNS of the cloud on the nodes that the pillar names, by the states bind of the base tree: bind/more.jinja has the zones.
{% set dns = salt['pillar.get']('dns', {}) %}
{% if grains.get('service_node') in [dns.get('primary')] + dns.get('secondaries', []) %}
include:
  - bind
{% endif %}
