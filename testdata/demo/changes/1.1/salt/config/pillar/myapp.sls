myapp:
  port: 8080
  workers: 8
  debug: False
  hostnames:
    - myapp.example.com
  features:
    search: True
    uploads: True
