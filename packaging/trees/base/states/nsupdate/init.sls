# Records on a server elsewhere, which are changed only if it answers differently.
{% import_yaml 'nsupdate/defaults.yaml' as defaults %}
{% set nsupdate = salt['pillar.get']('nsupdate', defaults, merge=true) %}
{% from 'nsupdate/normal.jinja' import normal %}
{% from 'restic/quoted.jinja' import quoted %}
bind9-dnsutils:
  pkg.installed: []

/etc/nsupdate.key:
  file.managed:
    - source: salt://bind/keys.conf.jinja
    - template: jinja
    - context:
        keys: {{ ({nsupdate.key.name: nsupdate.key} if nsupdate.key else {}) | json }}
    - mode: '0600'

{% for name, types in nsupdate.records.items() %}
{% for type, values in types.items() %}
{% set list = [] %}
{% for value in ([values] if values is string else values) %}{% do list.append(normal(type, value)) %}{% endfor %}
{% set answer = 'dig +short ' ~ quoted('@' ~ nsupdate.server) ~ ' ' ~ quoted(name) ~ ' ' ~ type %}
{% if type != 'TXT' %}{% set answer = answer ~ ' | tr A-Z a-z' %}{% endif %}
{% set want %}printf '%s\n'{% for value in list %} {{ quoted(value) }}{% endfor %}{% endset %}
nsupdate {{ name }} {{ type }}:
  cmd.run:
    - name: nsupdate -k /etc/nsupdate.key
    - stdin: |
        server {{ nsupdate.server }}
        zone {{ nsupdate.zone }}
        update delete {{ name }} {{ type }}
        {%- for value in list %}
        update add {{ name }} {{ nsupdate.ttl }} {{ type }} {{ value }}
        {%- endfor %}
        send
    - unless: {{ ('test "$(' ~ answer ~ ' | sort)" = "$(' ~ want ~ ' | sort)"') | json }}
    - require:
      - pkg: bind9-dnsutils
      - file: /etc/nsupdate.key
{% endfor %}
{% endfor %}
