base:
  '*': [notes]
