{% set app = pillar['myapp'] %}

Ensure the web server is installed:
  pkg.installed:
    - name: nginx

Ensure myapp has a user:
  group.present:
    - name: myapp
    - system: True
  user.present:
    - name: myapp
    - gid: myapp
    - system: True
    - home: /srv/service/data
    - createhome: False
    - shell: /usr/sbin/nologin

Ensure myapp can keep data:
  file.directory:
    - name: /srv/service/data/uploads
    - user: myapp
    - group: myapp
    - mode: '0750'
    - makedirs: True

Ensure myapp is configured:
  file.managed:
    - name: /etc/myapp/myapp.conf
    - source: salt://myapp/files/myapp.conf.j2
    - template: jinja
    - context:
        app: {{ app | json }}
    - user: root
    - group: myapp
    - mode: '0640'
    - makedirs: True
    - listen_in:
      - service: Ensure the web server runs

Ensure the site is served:
  file.managed:
    - name: /etc/nginx/sites-available/myapp
    - source: salt://myapp/files/site.j2
    - template: jinja
    - context:
        app: {{ app | json }}
    - makedirs: True
    - watch_in:
      - service: Ensure the web server runs

Ensure the site is enabled:
  file.symlink:
    - name: /etc/nginx/sites-enabled/myapp
    - target: ../sites-available/myapp
    - makedirs: True
    - watch_in:
      - service: Ensure the web server runs

Ensure the default site is gone:
  file.absent:
    - name: /etc/nginx/sites-enabled/default
    - watch_in:
      - service: Ensure the web server runs

Ensure the web server runs:
  service.running:
    - name: nginx
    - enable: True
    - reload: True

Warm the cache:
  cmd.run:
    - name: curl -fsS http://localhost:{{ app.port }}/ > /dev/null
    - onchanges:
      - file: Ensure the site is served
    - require:
      - service: Ensure the web server runs
