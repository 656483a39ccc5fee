An old version is held:
  pkg.installed:
    - pkgs:
      - corpus-one: '1.0'
    - hold: True

What needs it comes with it:
  pkg.installed:
    - name: corpus-two
    - require:
      - pkg: An old version is held

A daemon of the distribution:
  pkg.installed:
    - name: corpus-daemon

corpus-daemon:
  service.running:
    - enable: True
    - require:
      - pkg: A daemon of the distribution

What was never there:
  pkg.removed:
    - name: corpus-three
