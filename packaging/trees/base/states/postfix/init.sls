# A null client: mail of this host goes to a relay, and it accepts mail from nowhere else.
{% import_yaml 'postfix/defaults.yaml' as defaults %}
{% set postfix = salt['pillar.get']('postfix', defaults, merge=true) %}
postfix:
  debconf.set:
    - data:
        postfix/main_mailer_type: {type: select, value: No configuration}
  pkg.installed:
    - pkgs: [postfix, libsasl2-modules, ca-certificates]
    - install_recommends: false
    - require:
      - debconf: postfix
  # A restart, since a reload does not change the interfaces on which Postfix listens.
  service.running:
    - enable: true
    - require:
      - pkg: postfix
    - watch:
      - file: /etc/postfix/main.cf
      - file: /etc/postfix/relay

/etc/postfix/relay:
  file.managed:
    - contents: {{ ('# Credentials of the relay, from the pillar: postfix.\n' ~ (postfix.relay ~ ' ' ~ postfix.user ~ ':' ~ postfix.password ~ '\n' if postfix.user else '')) | json }}
    - mode: '0600'
    - require:
      - pkg: postfix

# The check reads the new file in a copy of the configuration; postconf refuses what Postfix cannot parse.
/etc/postfix/main.cf:
  file.managed:
    - source: salt://postfix/main.cf.jinja
    - template: jinja
    - context:
        postfix: {{ postfix | json }}
    - mode: '0644'
    - check_cmd: >-
        sh -ec 'd=$(mktemp -d); trap "rm -rf $d" EXIT; cp /etc/postfix/master.cf $d 2>/dev/null ||
        cp /usr/share/postfix/master.cf.dist $d; cp "$0" $d/main.cf; chmod 755 $d;
        out=$(postconf -c $d -n 2>&1); case $out in *fatal:*|*warning:*) printf "%s\n" "$out"; exit 1; esac'
    - require:
      - file: /etc/postfix/relay
