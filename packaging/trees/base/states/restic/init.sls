# Backups by restic: databases are dumped, files are saved, old backups are removed, and the repository is checked.
{% import_yaml 'restic/defaults.yaml' as defaults %}
{% set defaults = dict(defaults) %}
{% set of_node = '/etc/corpus-node/backup.json' %}
{% if salt['file.file_exists'](of_node) %}{% do defaults.update(salt['file.read'](of_node) | load_json) %}{% endif %}
{% set restic = salt['pillar.get']('restic', defaults, merge=true) %}
{% if not restic.password %}{{ raise('the pillar lacks restic:password, which encrypts the backups') }}{% endif %}
restic:
  pkg.installed: []

{% for path, source, mode in [
  ('/etc/restic/environment', 'environment.jinja', '0600'),
  ('/etc/restic/excludes', 'excludes.jinja', '0644'),
  ('/usr/local/sbin/corpus-backup', 'corpus-backup.jinja', '0755'),
  ('/etc/systemd/system/corpus-backup.service', 'corpus-backup.service', '0644'),
  ('/etc/systemd/system/corpus-backup.timer', 'corpus-backup.timer.jinja', '0644')] %}
{{ path }}:
  file.managed:
    - source: salt://restic/{{ source }}
    {%- if source.endswith('.jinja') %}
    - template: jinja
    - context:
        restic: {{ restic | json }}
    {%- endif %}
    - mode: '{{ mode }}'
    - makedirs: true
    {%- if mode != '0644' %}
    - check_cmd: sh -n
    {%- endif %}
    - require:
      - pkg: restic
{% endfor %}

corpus-backup.timer:
  service.running:
    - enable: true
    - watch:
      - file: /etc/systemd/system/corpus-backup.timer
