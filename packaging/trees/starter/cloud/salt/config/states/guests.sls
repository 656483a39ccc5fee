# The guests of a node. corpus-agent image verifies what they are made from; guest.present makes them; each runs in a unit
# of its own with users of its own. Pillar: guests:copies and guests:enable add files of the node and units to new guests.
{% import_yaml 'cloud.yaml' as cloud %}
{% set name = grains.get('service_node') %}
{% set node = cloud.get('nodes', {}).get(name) %}
{% if node %}
{% set parts = node.range4.split('/')[0].split('.') %}
{% set gateway = (parts[:3] | join('.')) ~ '.' ~ (parts[3] | int + 1) %}
{% set net6 = node.range6.split('/')[0] %}
{% set copies = {'/usr/bin/corpus-agent': '/usr/bin/corpus-agent'} %}
{% do copies.update(salt['pillar.get']('guests:copies', {})) %}
systemd-container:
  pkg.installed: []

{% set ids = [] %}
{% for guest in cloud.get('guests', {}).values() if guest.node == name %}{% do ids.append(guest.id) %}{% endfor %}
guests that are not in the cloud:
  guest.only:
    - guests: {{ ids | json }}
    - deleted: {{ cloud.get('deleted', {}).keys() | list | json }}

{% for guest, g in cloud.get('guests', {}).items() if g.node == name %}
{% set image = cloud.images[g.image] %}
{% set tree = '/var/lib/corpus-images/' ~ image.digest.split(':')[1] %}
{% set uids = 524288 + (g.ssh_port - 40000) * 65536 %}
image of {{ guest }}:
  cmd.run:
    - name: corpus-agent image {{ image.project }} {{ image.version }} {{ image.digest }}
    - unless: test -d {{ tree }} || test -f /var/lib/corpus-guests/{{ guest }}.json

/var/lib/corpus-guests/{{ guest }}:
  file.directory:
    - makedirs: true
    - mode: '0755'

/var/lib/corpus-guests/{{ guest }}/authorized_keys:
  file.managed:
    - contents: {{ (g.get('ssh_keys', []) | join('\n')) | json }}
    - user: {{ uids }}
    - group: {{ uids }}
    - mode: '0644'

{{ guest }}:
  guest.present:
    - id: {{ g.id | json }}
    - image: {{ tree }}/rootfs.tar
    - hostname: {{ g.project }}-{{ g.env }}-{{ node.region }}-{{ guest }}
    - bridge: guests
    - uids: {{ uids }}
    - binds:
        /var/lib/corpus-guests/{{ guest }}: /etc/corpus-node
    - copies: {{ copies | json }}
    - enable: {{ (['systemd-networkd.service'] + salt['pillar.get']('guests:enable', [])) | json }}
    - contents:
        /etc/systemd/network/10-corpus.network: |
          [Match]
          Name=host0

          [Network]
          Address={{ g.address4 }}/{{ node.range4.split('/')[1] }}
          Address={{ g.address6 }}/{{ node.range6.split('/')[1] }}
          Gateway={{ gateway }}
          Gateway={{ net6 if net6.endswith('::') else net6[:-1] }}1
          IPv6AcceptRA=no
        /etc/ssh/sshd_config.d/corpus.conf: |
          AuthorizedKeysFile .ssh/authorized_keys /etc/corpus-node/authorized_keys
        /etc/systemd/system/ssh.service.d/corpus.conf: |
          [Service]
          ExecStartPre=
          ExecStartPre=/usr/bin/ssh-keygen -A
          ExecStartPre=/usr/sbin/sshd -t
        /etc/resolv.conf: |
          nameserver {{ salt['pillar.get']('guests:resolver', '9.9.9.9') }}
    - require:
      - cmd: image of {{ guest }}
      - guest: guests that are not in the cloud

systemd-nspawn@{{ guest }}:
  service.running:
    - enable: true
    - require:
      - file: /var/lib/corpus-guests/{{ guest }}/authorized_keys
    - watch:
      - guest: {{ guest }}
{% endfor %}
{% endif %}
