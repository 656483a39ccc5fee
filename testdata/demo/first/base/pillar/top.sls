base:
  '*':
    - base
  'service_name:{{ grains["service_name"] }}':
    - match: grain
    - {{ grains['service_name'] }}
