# Addresses that fail to log in are banned for a while, by nftables.
{% import_yaml 'fail2ban/defaults.yaml' as defaults %}
{% set fail2ban = salt['pillar.get']('fail2ban', defaults, merge=true) %}
fail2ban:
  pkg.installed:
    - pkgs: [fail2ban, nftables, python3-systemd]
  service.running:
    - enable: true
    - reload: true
    - require:
      - pkg: fail2ban
    - watch:
      - file: /etc/fail2ban/jail.local

# The check tries the new file in a copy of the configuration.
/etc/fail2ban/jail.local:
  file.managed:
    - source: salt://fail2ban/jail.local.jinja
    - template: jinja
    - context:
        fail2ban: {{ fail2ban | json }}
    - mode: '0644'
    - check_cmd: >-
        sh -ec 'd=$(mktemp -d); trap "rm -rf $d" EXIT; cp -r /etc/fail2ban/. $d; cp "$0" $d/jail.local;
        fail2ban-client -c $d -t'
    - require:
      - pkg: fail2ban
