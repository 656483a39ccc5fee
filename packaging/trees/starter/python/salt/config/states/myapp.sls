python3:
  pkg.installed: []

# The unit comes from the release that is being deployed (next). The agent restarts it when current moves.
/etc/systemd/system/myapp.service:
  file.managed:
    - source: /srv/projects/myapp/next/myapp.service
    - makedirs: true

myapp:
  service.running:
    - enable: true
    - require:
      - pkg: python3
    - watch:
      - file: /etc/systemd/system/myapp.service
