links:
  - runbook    https://wiki.example.com/runbook
  - dashboards https://graphs.example.com
