# From the most generic to the most specific; what comes later wins. A file named after a service
# group, such as myapp-testing.sls, counts as soon as it exists.
base:
  '*':
    - base
    - people
    - order: 1
  'service_name:{{ grains["service_name"] }}':
    - match: grain
    - {{ grains['service_name'] }}
    - order: 5
  {% for root in opts['pillar_roots']['base'] -%}
  {% set service_group_sls = '{0}/{1}.sls'.format(root, grains['service_group']) -%}
  {% if salt['file.file_exists'](service_group_sls) %}
  'service_group:{{ grains["service_group"] }}':
    - match: grain
    - {{ grains['service_group'] }}
    - order: 10
  {% endif %}
  {% endfor -%}
