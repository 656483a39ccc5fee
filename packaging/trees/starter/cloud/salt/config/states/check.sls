# A node refuses a cloud in which two guests have the same address, port, name or ID, and changes nothing.
{% import_yaml 'cloud.yaml' as cloud %}
cloud.yaml:
  guest.checked:
    - data: {{ cloud | json | json }}
    - failhard: true
    - order: 1
