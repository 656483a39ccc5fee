base:
  '*':
    - hosts
