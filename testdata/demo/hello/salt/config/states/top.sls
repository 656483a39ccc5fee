base:
  '*': [hello]
