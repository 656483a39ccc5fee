# unknown: Its service runs
An old version is held:
  pkg.installed:
    - pkgs:
      - corpus-one: '1.0'
    - hold: True

A daemon of the distribution:
  pkg.installed:
    - name: corpus-daemon

Its service runs:
  service.running:
    - name: corpus-daemon
    - enable: True
    - require:
      - pkg: A daemon of the distribution

What was never there:
  pkg.removed:
    - name: corpus-three
