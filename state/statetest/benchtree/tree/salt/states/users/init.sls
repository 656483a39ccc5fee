{% for name, u in salt['pillar.get']('users', {}).items() %}
{{ name }}:
  user.present:
    - uid: {{ u.uid }}
    - usergroup: True
    - fullname: {{ u.fullname }}
    - shell: {{ u.shell }}
    - home: /home/{{ name }}
    - createhome: True
    - groups: {{ u.groups | json }}
    - remove_groups: False
  ssh_auth.present:
    - user: {{ name }}
    - enc: ssh-ed25519
    - comment: {{ u.comment }}
    - names:
      - {{ u.key }}
    - require:
      - user: {{ name }}
{% endfor %}
