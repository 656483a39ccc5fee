Ensure people see where they are:
  file.managed:
    - name: /etc/motd
    - source: salt://base/files/motd.j2
    - template: jinja
    - mode: '0644'
    - makedirs: True
