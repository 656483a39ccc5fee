# The pillar says what a host has: tools is a mapping of SLS files to true or false, which all files of the pillar add to.
base:
  '*':
    - motd
{%- for name, wanted in salt['pillar.get']('tools', {}).items() if wanted %}
    - {{ name }}
{%- endfor %}
