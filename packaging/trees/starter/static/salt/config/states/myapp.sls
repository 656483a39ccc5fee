nginx:
  pkg.installed: []
  service.running:
    - enable: true
    - require:
      - pkg: nginx
    - watch:
      - file: /etc/nginx/conf.d/myapp.conf

/etc/nginx/conf.d/myapp.conf:
  file.managed:
    - source: salt://myapp.conf
    - makedirs: true
    - require:
      - pkg: nginx
