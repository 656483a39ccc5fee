# unknown: corpus-one
corpus-one:
  pkg.latest: []

A package with its configuration:
  pkg.purged:
    - name: corpus-daemon

What needs it:
  pkg.installed:
    - name: corpus-two
