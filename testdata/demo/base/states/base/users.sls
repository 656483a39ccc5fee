# The people who may log in, from pillar.
{% for name, person in salt['pillar.get']('people', {}).items() %}
Ensure {{ name }} can log in:
  user.present:
    - name: {{ name }}
    - fullname: {{ person.fullname }}
    - shell: {{ person.get('shell', '/bin/bash') }}
    - groups: {{ person.get('groups', []) | json }}
    - remove_groups: False
{% endfor %}

Ensure who may become root is written down:
  file.managed:
    - name: /etc/sudoers.d/operators
    - mode: '0440'
    - makedirs: True
    - contents:
      - '# Managed by base. People are in pillar/people.sls.'
      {%- for name, person in salt['pillar.get']('people', {}).items() if person.get('root') %}
      - '{{ name }} ALL=(ALL) NOPASSWD: ALL'
      {%- endfor %}
