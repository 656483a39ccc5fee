/etc/systemd/system/notes.service:
  file.managed:
    - source: /srv/projects/notes/next/notes.service

notes:
  service.running:
    - enable: true
    - watch:
      - file: /etc/systemd/system/notes.service
