# Zones of the pillar. A host is the primary or a secondary of the zones that name one of its addresses.
{% import_yaml 'bind/defaults.yaml' as defaults %}
{% from 'bind/more.jinja' import zones as more with context %}
{% from 'bind/names.jinja' import reverse %}
{% set bind = salt['pillar.get']('bind', defaults, merge=true) %}
{% set zones = {} %}
{% for name, zone in bind.zones.items() %}{% do zones.update({reverse(name): zone}) %}{% endfor %}
{% for name, zone in more.items() %}{% do zones.update({reverse(name): zone}) %}{% endfor %}
{% set mine = bind.addresses + grains.get('ipv4', []) + grains.get('ipv6', []) %}
bind:
  pkg.installed:
    - pkgs: [bind9, bind9-utils, bind9-dnsutils]
  service.running:
    - name: named
    - enable: true
    - reload: true
    - require:
      - pkg: bind
    - watch:
      - file: /etc/bind/named.conf
      - file: /etc/bind/keys.conf

/etc/bind/keys.conf:
  file.managed:
    - source: salt://bind/keys.conf.jinja
    - template: jinja
    - context:
        keys: {{ bind['keys'] | json }}
    - user: root
    - group: bind
    - mode: '0640'
    - check_cmd: named-checkconf
    - require:
      - pkg: bind

/etc/bind/zones:
  file.directory:
    - mode: '0755'
    - require:
      - pkg: bind

{% for name, zone in zones.items() if zone.primary in mine %}
{% set path = '/var/lib/bind/' ~ name ~ '.zone' if zone.get('updates') else '/etc/bind/zones/' ~ name %}
# named writes a zone that takes updates, so only its beginning is from here.
{{ path }}:
  file.managed:
    - source: salt://bind/zone.jinja
    - template: jinja
    - context:
        file: {{ path }}
        name: {{ name }}
        zones: {{ zones | json }}
    - user: {{ 'bind' if zone.get('updates') else 'root' }}
    - group: bind
    - mode: '0644'
    - replace: {{ not zone.get('updates') }}
    {%- if zone.get('updates') %}
    - check_cmd: named-checkzone -i local {{ name }}
    {%- else %}
    # An undo restores the zone's file and not this one, so its serial is the greatest that was ever served.
    - check_cmd: sh -ec 'named-checkzone -i local {{ name }} "$0"; head -n 1 "$0" > {{ path }}.serial'
    {%- endif %}
    - require:
      - file: /etc/bind/zones
    - require_in:
      - file: /etc/bind/named.conf
    - watch_in:
      - service: bind
{% endfor %}

/etc/bind/named.conf:
  file.managed:
    - source: salt://bind/named.conf.jinja
    - template: jinja
    - context:
        bind: {{ bind | json }}
        zones: {{ zones | json }}
        mine: {{ mine | json }}
    - mode: '0644'
    - check_cmd: named-checkconf
    - require:
      - file: /etc/bind/keys.conf
