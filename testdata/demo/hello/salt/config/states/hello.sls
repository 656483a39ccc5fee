/etc/systemd/system/hello.service:
  file.managed:
    - source: /srv/projects/hello/next/hello.service
    - makedirs: true

hello:
  service.running:
    - enable: true
    - watch:
      - file: /etc/systemd/system/hello.service
      - file: /etc/hello/hello.env
