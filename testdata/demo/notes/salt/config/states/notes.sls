/etc/systemd/system/notes.service:
  file.managed:
    - source: /srv/projects/notes/next/notes.service
    - makedirs: true

notes:
  service.running:
    - enable: true
    - watch:
      - file: /etc/systemd/system/notes.service
