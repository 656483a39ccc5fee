include:
  - base.users
  - base.motd
  - base.backup
