# A node finds its guests by their names.
{% import_yaml 'cloud.yaml' as cloud %}
{% for name, guest in cloud.get('guests', {}).items() if guest.node == grains.get('service_node') %}
guest {{ name }}:
  host.present:
    - ip: {{ guest.address4 }}
    - names:
      - {{ name }}
      {%- if cloud.get('domain') %}
      - {{ name }}.{{ cloud.domain }}
      {%- endif %}
{% endfor %}
