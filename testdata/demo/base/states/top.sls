# Every host gets base. What else it gets is decided by the grains that its hostname gives.
base:
  '*':
    - base
  'service_name:{{ grains["service_name"] }}':
    - match: grain
    - {{ grains['service_name'] }}
