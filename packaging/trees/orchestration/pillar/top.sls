base:
  '*':
    - aws
