# The guests of a node. corpus-agent image verifies what they are made from; guest.present makes them; each runs in a unit
# of its own with users of its own. Pillar: guests:copies and guests:enable add files of the node and units to new guests.
# A guest that comes from another node is not started before that one has left it (from). If it brings its disk (copy), it waits
# for the archive, which the node before makes.
{% import_yaml 'cloud.yaml' as cloud %}
{% set name = grains.get('service_node') %}
{% set node = cloud.get('nodes', {}).get(name) %}
{% if node %}
{% set parts = node.range4.split('/')[0].split('.') %}
{% set gateway = (parts[:3] | join('.')) ~ '.' ~ (parts[3] | int + 1) %}
{% set net6 = node.range6.split('/')[0] %}
{% set copies = {'/usr/bin/corpus-agent': '/usr/bin/corpus-agent'} %}
{% do copies.update(salt['pillar.get']('guests:copies', {})) %}
{% set lxc = node.driver == 'lxc' %}
{% if lxc %}
# LXC has a bridge of its own, which guests do not use.
/etc/systemd/system/lxc-net.service:
  file.symlink:
    - target: /dev/null
    - makedirs: true

# The user IDs of guests, which LXC may map since they are root's.
{% for file in ['/etc/subuid', '/etc/subgid'] %}
{{ file }}:
  file.append:
    - text: root:524288:655425536
{% endfor %}

lxc:
  pkg.installed:
    - require:
      - file: /etc/systemd/system/lxc-net.service
{% else %}
systemd-container:
  pkg.installed: []
{% endif %}

# Quotas limit the disks of guests where /var/lib/machines is on btrfs, or on ext4 or xfs with project quotas.
{% set at = salt['mount.active'](extended=True) if salt['file.file_exists']('/proc/self/mountinfo') else {} %}
{% set disks = at.get('/var/lib/machines', at.get('/var/lib', at.get('/var', at.get('/', {})))) %}
{% if disks.get('fstype') == 'btrfs' %}
btrfs-progs:
  pkg.installed: []
{% elif disks.get('fstype') in ['ext4', 'xfs'] and 'prjquota' in disks.superopts %}
quota:
  pkg.installed: []
{% endif %}

# At boot a run of the agent starts the guests, so that none starts that has moved away while the node was off.
/etc/systemd/system/corpus-guests.service:
  file.managed:
    - makedirs: true
    - mode: '0644'
    - contents: |
        [Unit]
        Description=Start the guests of this node with a run of the agent
        Wants=network-online.target
        After=network-online.target

        [Service]
        Type=oneshot
        ExecStart=/usr/bin/systemctl start --no-block corpus-agent.service

        [Install]
        WantedBy=multi-user.target

corpus-guests:
  service.enabled:
    - require:
      - file: /etc/systemd/system/corpus-guests.service

{% set ids = [] %}
{% for g in cloud.get('guests', {}).values() if g.node == name and not g.get('from') %}
{% do ids.append(g.get('disk', g.id)) %}
{% endfor %}
guests that are not in the cloud:
  guest.only:
    - guests: {{ ids | json }}
    - deleted: {{ cloud.get('deleted', {}).keys() | list | json }}

{% for guest, g in cloud.get('guests', {}).items() if g.get('copy') and g.old[-1].split('.')[0] == name %}
archive of {{ guest }}:
  guest.archived:
    - name: {{ guest }}
    - disk: '{{ g.old[-1].split('.')[1] }}'
    - file: /var/lib/machines/{{ guest }}-{{ g.disk }}.tar
    - require:
      - guest: guests that are not in the cloud
{% endfor %}

{% for guest, g in cloud.get('guests', {}).items() if g.node == name and not g.get('from') %}
{% set image = cloud.images[g.image] %}
{% set tree = '/var/lib/corpus-images/' ~ image.digest.split(':')[1] %}
{% set uids = 524288 + (g.ssh_port - 40000) * 65536 %}
{% set record = '/var/lib/corpus-guests/' ~ guest ~ '.json' %}
{% set made = salt['file.file_exists'](record) and salt['file.contains'](record, g.get('disk', g.id)) %}
{% if not made and not g.get('copy') %}
image of {{ guest }}:
  cmd.run:
    - name: corpus-agent image {{ image.project }} {{ image.version }} {{ image.digest }}
    - unless: test -d {{ tree }}
{% endif %}

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

/var/lib/corpus-guests/{{ guest }}/host0.network:
  file.managed:
    - mode: '0644'
    - contents: |
        [Match]
        Name=host0

        [Network]
        Address={{ g.address4 }}/{{ node.range4.split('/')[1] }}
        Address={{ g.address6 }}/{{ node.range6.split('/')[1] }}
        Gateway={{ gateway }}
        Gateway={{ net6 if net6.endswith('::') else net6[:-1] }}1
        IPv6AcceptRA=no

{{ guest }}:
  guest.present:
    - id: {{ g.id | json }}
    - disk: {{ g.get('disk', g.id) | json }}
{% if g.get('copy') %}
    - image: /var/lib/machines/{{ guest }}-{{ g.disk }}.tar
    - moved: true
{% else %}
    - image: {{ tree }}/rootfs.tar
{% endif %}
    - hostname: {{ g.project }}-{{ g.env }}-{{ node.region }}-{{ guest }}
    - size: {{ g.size }}
    - driver: {{ node.driver }}
    - bridge: guests
    - uids: {{ uids }}
    - binds:
        /var/lib/corpus-guests/{{ guest }}: /etc/corpus-node
        /var/lib/corpus-guests/{{ guest }}/host0.network: /etc/systemd/network/10-corpus.network
    - copies: {{ copies | json }}
    - enable: {{ (['systemd-networkd.service'] + salt['pillar.get']('guests:enable', [])) | json }}
    - contents:
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
      - guest: guests that are not in the cloud
{% if not made and not g.get('copy') %}
      - cmd: image of {{ guest }}
{% endif %}

{{ 'corpus-lxc' if lxc else 'systemd-nspawn' }}@{{ guest }}:
  service.running:
    - enable: false
{% if g.get('copy') %}
    - onlyif: grep -q '"disk":"{{ g.disk }}".*"ready"' {{ record }}
{% endif %}
    - require:
      - file: /var/lib/corpus-guests/{{ guest }}/authorized_keys
      - file: /var/lib/corpus-guests/{{ guest }}/host0.network
    - watch:
      - guest: {{ guest }}
{% endfor %}
{% endif %}
