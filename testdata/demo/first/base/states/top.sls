# Every host gets base. What else it gets is decided by the service it belongs to.
base:
  '*':
    - base
  'service_name:{{ grains["service_name"] }}':
    - match: grain
    - {{ grains['service_name'] }}
