base:
  '*': [myapp]
