/etc/motd:
  file.managed:
    - contents: Welcome to {{ grains.id }}
    - makedirs: true
