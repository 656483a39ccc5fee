enable_monitoring: False

links:
  - runbook    https://wiki.example.com/runbook
  - dashboards https://graphs.example.com

backup:
  target: /var/backups
  hour: 3
  minute: 17
