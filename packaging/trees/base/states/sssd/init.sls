# Users of the LDAP server log in with their SSH keys, and the sudo rules of this host's project hold.
{% import_yaml 'slapd/defaults.yaml' as defaults %}
{% from 'slapd/required.jinja' import required with context %}
{% set ldap = salt['pillar.get']('ldap', defaults, merge=true) %}
{{ required(['base', 'server']) }}
{% if ldap.project == '' %}{% do ldap.update({'project': grains.get('service_name', '')}) %}{% endif %}
{# The unit of 2.10 and later makes the file readable for its group, a mode that sssctl refuses: it checks a copy. #}
{% set shared = grains.osrelease | float >= {'Debian': 13, 'Ubuntu': 25}.get(grains.os, 99) %}
sssd:
  pkg.installed:
    - pkgs: [sssd-ldap, sssd-tools, libnss-sss, libpam-sss, libsss-sudo, sudo, openssh-server]
    - install_recommends: false
  service.running:
    - enable: true
    - require:
      - pkg: sssd
    - watch:
      - file: /etc/sssd/sssd.conf
      {%- if ldap.ca %}
      - file: /etc/sssd/ca.pem
      {%- endif %}

{% if ldap.ca %}
/etc/sssd/ca.pem:
  file.managed:
    - contents: {{ ldap.ca | json }}
    - mode: '0644'
    - require:
      - pkg: sssd
{% endif %}

/etc/sssd/sssd.conf:
  file.managed:
    - source: salt://sssd/sssd.conf.jinja
    - template: jinja
    - context:
        ldap: {{ ldap | json }}
    - mode: '{{ '0640' if shared else '0600' }}'
    - check_cmd: >-
        sh -ec 'f=$(mktemp); trap "rm $f" EXIT; cat "$0" > $f; sssctl config-check -s /etc/sssd/conf.d -c $f'
    - require:
      - pkg: sssd

pam-auth-update --package --enable mkhomedir:
  cmd.run:
    - unless: grep -q pam_mkhomedir /etc/pam.d/common-session
    - require:
      - pkg: sssd

/etc/ssh/sshd_config.d/corpus-ldap.conf:
  file.managed:
    - contents: |
        # Written by corpus-agent.
        AuthorizedKeysCommand /usr/bin/sss_ssh_authorizedkeys
        AuthorizedKeysCommandUser nobody
    - mode: '0644'
    - check_cmd: sshd -t -f
    - require:
      - pkg: sssd

ssh:
  service.running:
    - enable: true
    - reload: true
    - watch:
      - file: /etc/ssh/sshd_config.d/corpus-ldap.conf
