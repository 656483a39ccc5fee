# Testing watches itself more closely, and works less.
enable_monitoring: True

myapp:
  workers: 2
  debug: True
  hostnames:
    - myapp-testing.example.com
