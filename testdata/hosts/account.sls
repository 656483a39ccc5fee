# unknown: grace
deployers:
  group.present:
    - gid: 2001

grace:
  user.present:
    - uid: 2002
    - gid: deployers
    - fullname: Grace Example
    - home: /home/grace
    - shell: /bin/bash
    - groups: [adm, cron-users]
    - password: '$6$abcdefgh$uQJr1FqkkVQ2fNYnkAfc9YiQs3W7oU7zt3vjC8y0TQH2XbR3nZQmNvM8oT2Hq1bS4kQ0v7uJ0yX5n3C8w6Vd1'
    - require:
      - group: deployers
      - group: cron-users

cron-users:
  group.present:
    - gid: 2003

batch:
  user.present:
    - system: True
    - createhome: False
    - shell: /usr/sbin/nologin

Grace logs in with a key:
  ssh_auth.present:
    - user: grace
    - enc: ssh-ed25519
    - comment: grace@example.com
    - name: AAAAC3NzaC1lZDI1NTE5AAAAIJ1bK8cYFfqf8n2vYw0bQm3mS9p3p0o5nq1rZ7Gd9k4h
    - require:
      - user: grace

/usr/local/bin/nightly --all:
  cron.present:
    - user: grace
    - identifier: nightly
    - minute: 17
    - hour: 3
    - comment: every night
    - require:
      - user: grace

MAILTO:
  cron.env_present:
    - user: grace
    - value: ops@example.com
    - require:
      - user: grace

database.example.com:
  host.present:
    - ip: 192.0.2.7
