# The pillar says what a host has: tools is a mapping of SLS files to true or false, which all files of the pillar add to.
base:
  '*':
    - motd
{%- for name, wanted in salt['pillar.get']('tools', {}).items() if wanted %}
    - {{ name }}
{%- endfor %}
{#- The node of this guest has settings of backups for it (corpus guest backup). #}
{%- if 'restic' not in salt['pillar.get']('tools', {}) and grains.get('virtual') in ['container', 'systemd-nspawn']
    and salt['file.file_exists']('/etc/corpus-node/backup.json') %}
    - restic
{%- endif %}
