base:
  "*":
    - motd
