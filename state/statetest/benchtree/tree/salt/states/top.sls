base:
  '*':
    - base
    - users
    - apps
    - jobs
