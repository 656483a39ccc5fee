# Signatures expire, so a host needs the right time.
chrony:
  pkg.installed: []
  service.running:
    - name: {{ 'chrony' if grains.os_family == 'Debian' else 'chronyd' }}
    - enable: true
    - require:
      - pkg: chrony
