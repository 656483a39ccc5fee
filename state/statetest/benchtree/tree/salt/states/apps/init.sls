include:
  - base

{% for name, app in pillar.get('apps', {}).items() %}
/srv/bench/d1/{{ name }}.conf:
  file.managed:
    - source: salt://apps/files/app.conf.j2
    - template: jinja
    - user: root
    - group: users
    - mode: '0640'
    - context:
        name: {{ name }}
        app: {{ app | json }}
    - require:
      - file: /srv/bench/d1
{% endfor %}
