/etc/motd:
  file.managed:
    - contents: {{ salt['pillar.get']('motd', 'This host is managed by corpus-agent.') | json }}
    - mode: '0644'
