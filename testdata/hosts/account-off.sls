/usr/local/bin/nightly --all:
  cron.absent:
    - user: grace
    - identifier: nightly

Grace has another key:
  ssh_auth.absent:
    - user: grace
    - name: AAAAC3NzaC1lZDI1NTE5AAAAIJ1bK8cYFfqf8n2vYw0bQm3mS9p3p0o5nq1rZ7Gd9k4h

batch:
  user.absent: []

database.example.com:
  host.absent:
    - ip: 192.0.2.7
