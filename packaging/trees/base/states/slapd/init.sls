# Users, their SSH keys, projects and the sudo rules of each, as a tree that is what the pillar says.
{% import_yaml 'slapd/defaults.yaml' as defaults %}
{% from 'slapd/required.jinja' import required with context %}
{% set ldap = salt['pillar.get']('ldap', defaults, merge=true) %}
{{ required(['base']) }}
{% from 'slapd/more.jinja' import users, projects with context %}
{% set all = {'users': {}, 'projects': {}} %}
{% for what, key, more in [('users', 'uid', users), ('projects', 'gid', projects)] %}
{% for name in more if name in ldap[what] %}
{{ raise('ldap:' ~ what ~ ':' ~ name ~ ' of the pillar is among those of the service, too: remove one of them') }}
{% endfor %}
{% do all[what].update(ldap[what]) %}
{% do all[what].update(more) %}
{% set numbers = {} %}
{% for name, one in all[what].items() %}
{% if one[key] in numbers %}{{ raise('ldap:' ~ what ~ ': ' ~ numbers[one[key]] ~ ' and ' ~ name ~ ' have the same ' ~ key) }}{% endif %}
{% do numbers.update({one[key]: name}) %}
{% endfor %}
{% endfor %}
{% set ldap = dict(ldap, users=all.users, projects=all.projects) %}
slapd:
  debconf.set:
    - data:
        slapd/no_configuration: {type: boolean, value: true}
  pkg.installed:
    - pkgs: [slapd, ldap-utils, openssl, python3]
    - require:
      - debconf: slapd
  service.running:
    - enable: true
    - require:
      - pkg: slapd
      - file: /var/lib/ldap/corpus
    - watch:
      - file: /etc/ldap/slapd.conf
      - file: /etc/default/slapd
      {%- if ldap.certificate %}
      - file: /etc/ldap/server.key
      - file: /etc/ldap/server.pem
      {%- endif %}

{% if ldap.certificate %}
/etc/ldap/server.pem:
  file.managed:
    - contents: {{ ldap.certificate | json }}
    - mode: '0644'
    - check_cmd: openssl x509 -noout -in
    - require:
      - pkg: slapd
    - require_in:
      - file: /etc/ldap/slapd.conf

/etc/ldap/server.key:
  file.managed:
    - contents: {{ ldap.key | json }}
    - user: root
    - group: openldap
    - mode: '0640'
    - check_cmd: >-
        sh -ec 'key=$(openssl pkey -pubout -in "$0"); [ "$key" = "$(openssl x509 -noout -pubkey -in /etc/ldap/server.pem)" ] ||
        { echo "ldap:key is not the key of ldap:certificate"; exit 1; }'
    - require:
      - file: /etc/ldap/server.pem
    - require_in:
      - file: /etc/ldap/slapd.conf
{% endif %}

/var/lib/ldap/corpus:
  file.directory:
    - user: openldap
    - group: openldap
    - mode: '0700'
    - require:
      - pkg: slapd

/etc/ldap/slapd.conf:
  file.managed:
    - source: salt://slapd/slapd.conf.jinja
    - template: jinja
    - context:
        ldap: {{ ldap | json }}
    - user: root
    - group: openldap
    - mode: '0640'
    - check_cmd: sh -ec 'install -d -o openldap -g openldap /run/slapd; slaptest -u -f "$0"'
    - tmp_dir: /etc/ldap # AppArmor lets slaptest, which is slapd, read no other files
    - require:
      - pkg: slapd

/etc/default/slapd:
  file.managed:
    - contents: |
        # Written by corpus-agent.
        SLAPD_CONF=/etc/ldap/slapd.conf
        SLAPD_USER=openldap
        SLAPD_GROUP=openldap
        SLAPD_SERVICES="ldap:///{{ ' ldaps:///' if ldap.certificate else '' }} ldapi:///"
        SLAPD_OPTIONS=""
    - mode: '0644'
    - require:
      - file: /etc/ldap/slapd.conf

/usr/local/sbin/corpus-ldap-sync:
  file.managed:
    - source: salt://slapd/corpus-ldap-sync
    - mode: '0755'

/etc/ldap/corpus.ldif:
  file.managed:
    - source: salt://slapd/tree.ldif.jinja
    - template: jinja
    - context:
        ldap: {{ ldap | json }}
    - mode: '0600'
    - require:
      - pkg: slapd

corpus-ldap-sync /etc/ldap/corpus.ldif:
  cmd.run:
    - unless: corpus-ldap-sync --check /etc/ldap/corpus.ldif
    - require:
      - service: slapd
      - file: /usr/local/sbin/corpus-ldap-sync
    - watch:
      - file: /etc/ldap/corpus.ldif
