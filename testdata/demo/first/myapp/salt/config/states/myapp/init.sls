Ensure myapp can keep data:
  file.directory:
    - name: /srv/service/data/uploads
    - mode: '0750'

Ensure myapp is configured:
  file.managed:
    - name: /etc/myapp/myapp.conf
    - source: salt://myapp/files/myapp.conf.j2
    - template: jinja
    - mode: '0644'
    - makedirs: True
