corpus-one:
  pkg.latest: []

A package with its configuration:
  pkg.purged:
    - name: corpus-daemon
