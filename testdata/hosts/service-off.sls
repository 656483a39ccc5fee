sleeper:
  service.dead:
    - enable: False

Somebody may start this again:
  service.unmasked:
    - name: nobody-starts-this.service

cron:
  service.disabled: []
