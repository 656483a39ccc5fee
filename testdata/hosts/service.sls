/etc/systemd/system/sleeper.service:
  file.managed:
    - contents: |
        [Unit]
        Description=Sleeps
        [Service]
        EnvironmentFile=-/etc/sleeper.conf
        ExecStart=/bin/sleep infinity
        ExecReload=/bin/true
        [Install]
        WantedBy=multi-user.target

/etc/sleeper.conf:
  file.managed:
    - contents: DEPTH=3

sleeper:
  service.running:
    - enable: True
    - require:
      - file: /etc/systemd/system/sleeper.service
    - watch:
      - file: /etc/sleeper.conf

Nobody starts this:
  service.masked:
    - name: nobody-starts-this.service

cron:
  service.running:
    - enable: True
