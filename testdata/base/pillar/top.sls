base:
  '*': [base]
  '*-2': [second]
