# A node refuses a cloud in which two guests have the same address, port, name or ID, and changes nothing.
{% import_yaml 'cloud.yaml' as cloud %}
cloud.yaml:
  guest.checked:
    - data: {{ cloud | json | json }}
    - failhard: true
    - order: 1

# A hostname that is not this node's would stop its guests, or begin to make those of another node.
{% set name = grains.get('service_node') %}
{% set record = '/var/lib/corpus-guests/node' %}
{% if name not in cloud.get('nodes', {}) %}
the cloud has no node {{ name }}:
  test.fail_without_changes:
    - name: the hostname says that this host is the node {{ name }}, and the cloud has none; see hostname, and corpus node ls
    - failhard: true
    - order: 2
{% elif salt['file.file_exists'](record) and salt['file.read'](record) | trim != name %}
{% set before = salt['file.read'](record) | trim %}
this host is the node {{ before }}:
  test.fail_without_changes:
    - name: the hostname says that this host is the node {{ name }}, and it has the guests of {{ before }};
        set the hostname back, or remove {{ record }} if it is to become {{ name }}
    - failhard: true
    - order: 2
{% endif %}
