# Records on a server elsewhere, which are changed only if it answers differently.
{% import_yaml 'nsupdate/defaults.yaml' as defaults %}
{% set nsupdate = salt['pillar.get']('nsupdate', defaults, merge=true) %}
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
{% set list = [values] if values is string else values %}
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
    - unless: test "$(dig +short @{{ nsupdate.server }} {{ name }} {{ type }} | sort)" = "$(printf '%s\n' {{ list | sort | join(' ') }})"
    - require:
      - pkg: bind9-dnsutils
      - file: /etc/nsupdate.key
{% endfor %}
{% endfor %}
