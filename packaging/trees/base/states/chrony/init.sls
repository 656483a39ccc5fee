# Signatures expire, so a host needs the right time.
{% import_yaml 'chrony/defaults.yaml' as defaults %}
{% set chrony = salt['pillar.get']('chrony', defaults, merge=true) %}
{% set debian = grains.os_family == 'Debian' %}
{% if chrony.containers or grains.get('virtual') not in ['container', 'systemd-nspawn'] %}
chrony:
  pkg.installed: []
  service.running:
    - name: {{ 'chrony' if debian else 'chronyd' }}
    - enable: true
    - require:
      - pkg: chrony
    - watch:
      - file: {{ '/etc/chrony/chrony.conf' if debian else '/etc/chrony.conf' }}

{{ '/etc/chrony/chrony.conf' if debian else '/etc/chrony.conf' }}:
  file.managed:
    - source: salt://chrony/chrony.conf.jinja
    - template: jinja
    - context:
        chrony: {{ chrony | json }}
    - mode: '0644'
    - check_cmd: chronyd -p -f
    {%- if debian %}
    - tmp_dir: /etc/chrony # AppArmor lets chronyd read no other files
    {%- endif %}
    - require:
      - pkg: chrony
{% endif %}
