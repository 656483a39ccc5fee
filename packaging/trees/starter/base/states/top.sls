base:
  '*':
    - motd
    - time
