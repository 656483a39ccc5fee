{% for i in range(1, 11) %}
marker-{{ i }}:
  cmd.run:
    - name: touch /srv/bench/d2/marker{{ i }}
    - unless: test -e /srv/bench/d2/marker{{ i }}
{% endfor %}

{% for i in range(1, 5) %}
job-{{ i }}:
  cron.present:
    - name: /usr/bin/true job{{ i }}
    - identifier: job-{{ i }}
    - user: root
    - minute: '{{ i * 7 }}'
    - hour: '{{ i }}'
{% endfor %}
