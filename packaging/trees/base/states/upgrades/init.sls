# Security updates are installed each day.
{% import_yaml 'upgrades/defaults.yaml' as defaults %}
{% set upgrades = salt['pillar.get']('upgrades', defaults, merge=true) %}
{% if grains.os_family == 'Debian' %}
unattended-upgrades:
  pkg.installed:
    - install_recommends: false

/etc/apt/apt.conf.d/20auto-upgrades:
  file.managed:
    - contents: |
        APT::Periodic::Update-Package-Lists "1";
        APT::Periodic::Unattended-Upgrade "1";
    - mode: '0644'
    - require:
      - pkg: unattended-upgrades

/etc/apt/apt.conf.d/52corpus-upgrades:
  file.managed:
    - source: salt://upgrades/upgrades.conf.jinja
    - template: jinja
    - context:
        upgrades: {{ upgrades | json }}
    - mode: '0644'
    - check_cmd: apt-config dump -c
    - require:
      - pkg: unattended-upgrades

{% for timer in ['apt-daily.timer', 'apt-daily-upgrade.timer'] %}
{{ timer }}:
  service.running:
    - enable: true
    - require:
      - pkg: unattended-upgrades
{% endfor %}
{% endif %}
