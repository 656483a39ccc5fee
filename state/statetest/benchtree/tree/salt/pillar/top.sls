base:
  '*':
    - users
    - apps
