net.ipv4.ip_forward:
  sysctl.present:
    - value: 1

Europe/Berlin:
  timezone.system: []

The locale of the host:
  locale.present:
    - name: de_DE.UTF-8

The language of the host:
  locale.system:
    - name: de_DE.UTF-8
    - require:
      - locale: The locale of the host

The name of the host:
  network.system:
    - enabled: True
    - hostname: {{ grains['service_name'] }}-testing-local1-7
    - apply_hostname: True
    - retain_settings: True
