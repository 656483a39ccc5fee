myapp:
  workers: 2
  search: False
