{% set root = '/srv/bench' %}
base-packages:
  pkg.installed:
    - pkgs: [coreutils, sed]

{% for p in ['curl', 'git', 'cron', 'procps'] %}
{{ p }}:
  pkg.installed: []
{% endfor %}

{{ root }}:
  file.directory:
    - user: root
    - group: root
    - mode: '0755'

{% for d in range(1, 10) %}
{{ root }}/d{{ d }}:
  file.directory:
    - mode: '0750'
    - group: users
    - require:
      - file: {{ root }}
{% endfor %}

{% for l in range(1, 11) %}
{{ root }}/link{{ l }}:
  file.symlink:
    - target: {{ root }}/d{{ loop.index % 9 + 1 }}
    - require:
      - file: {{ root }}
{% endfor %}
