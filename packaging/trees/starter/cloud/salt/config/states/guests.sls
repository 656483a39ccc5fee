# The guests of a node. corpus-agent image verifies what they are made from; guest.present makes them; each runs in a unit
# of its own with users of its own. Pillar: guests:copies and guests:enable add files of the node and units to new guests.
# A guest that comes from another node is not started before that one has left it (from). If it brings its disk (copy), it waits
# for the archive, which the node before makes.
# Working trees of a developer (mounts) are shown to guests of dev with their owner as root of the guest, and nobody for all others.
# Executables in hooks/guest-create.d of the release run before a disk of a guest is made, and those in hooks/guest-created.d
# after the guest was started. The file being-made lasts from before the first of them until after the last one.
# The states of a guest may fail (may_fail): the run reports them and continues with the other guests.
{% from 'members.jinja' import cloud, guests, members, removed with context %}
{% set name = grains.get('service_node') %}
{% set node = cloud.get('nodes', {}).get(name) %}
{% if node %}
{% set parts = node.range4.split('/')[0].split('.') %}
{% set gateway = (parts[:3] | join('.')) ~ '.' ~ (parts[3] | int + 1) %}
{% set net6 = node.range6.split('/')[0] %}
{% set copies = {'/usr/bin/corpus-agent': '/usr/bin/corpus-agent'} %}
{# A guest deploys by itself: it has the agent's units, the node's root of trust, and its store unless a copy names another. #}
{% set own = (salt['file.read']('/etc/corpus/agent.yaml') | load_yaml if salt['file.file_exists']('/etc/corpus/agent.yaml')) or {} %}
{% set deploys = [] %}
{% for unit in ['corpus-agent.service', 'corpus-agent.timer'] %}
{% for dir in ['/usr/lib/systemd/system', '/etc/systemd/system'] if salt['file.file_exists'](dir ~ '/' ~ unit) %}
{% do copies.update({'/etc/systemd/system/' ~ unit: dir ~ '/' ~ unit}) %}
{% endfor %}
{% endfor %}
{% if salt['file.file_exists']('/var/lib/corpus/trust/root.json') %}
{% do copies.update({'/var/lib/corpus/trust/given': '/var/lib/corpus/trust/root.json'}) %}
{% if '/etc/systemd/system/corpus-agent.timer' in copies and own.get('store') %}
{% do deploys.append('corpus-agent.timer') %}
{% endif %}
{% endif %}
{% do copies.update(salt['pillar.get']('guests:copies', {})) %}
{% set release = '/srv/projects/cloud/next' %}
{% macro hooks(stage, guest, g, before, after) %}
{%- set dir = release ~ '/hooks/' ~ stage ~ '.d' %}
{%- set image = cloud.images[g.image] %}
{%- set last = namespace(id=before) %}
{%- for hook in (salt['file.readdir'](dir) | sort if salt['file.directory_exists'](dir) else [])
    if not hook.startswith('.') and not hook.startswith('README') %}
{{ (stage ~ ' ' ~ hook ~ ' of ' ~ guest) | json }}:
  cmd.run:
    - name: {{ (dir ~ '/' ~ hook) | quote | json }}
    - may_fail: true
    - cwd: {{ release }}
    - clean_env: true
    - timeout: 600
    - env:
        PATH: /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
        HOME: /root
        LANG: C.UTF-8
        CORPUS_STAGE: {{ stage }}
        CORPUS_NODE: {{ name }}
        CORPUS_RELEASE: {{ release }}
        CORPUS_GUEST: {{ guest }}
        CORPUS_GUEST_HOST: {{ g.project }}-{{ g.env }}-{{ node.region }}-{{ guest }}
        CORPUS_GUEST_PROJECT: {{ g.project }}
        CORPUS_GUEST_ENV: {{ g.env }}
        CORPUS_GUEST_ID: {{ g.id | json }}
        CORPUS_GUEST_DISK: {{ g.get('disk', g.id) | json }}
        CORPUS_GUEST_IMAGE: {{ (image.project ~ ' ' ~ image.version) | json }}
        CORPUS_GUEST_SIZE: {{ g.size }}
        CORPUS_GUEST_ADDRESS4: {{ g.address4 }}
        CORPUS_GUEST_ADDRESS6: {{ g.address6 | json }}
        CORPUS_GUEST_SSH_PORT: {{ g.ssh_port | string | json }}
        CORPUS_GUEST_NAMES: {{ (([guest ~ '.' ~ cloud.domain] if cloud.get('domain') else []) + g.get('names', [])) | join(' ') | json }}
    - require:
      - {{ last.id }}
    {%- if loop.last %}
    - require_in:
      - {{ after }}
    {%- endif %}
{%- set last.id = 'cmd: ' ~ ((stage ~ ' ' ~ hook ~ ' of ' ~ guest) | json) %}
{% endfor %}
{%- endmacro %}
{% set lxc = node.driver == 'lxc' %}
{% if lxc %}
# LXC has a bridge of its own, which guests do not use.
/etc/systemd/system/lxc-net.service:
  file.symlink:
    - target: /dev/null
    - makedirs: true

lxc:
  pkg.installed:
    - require:
      - file: /etc/systemd/system/lxc-net.service
{% else %}
systemd-container:
  pkg.installed: []
{% endif %}

# The user IDs of guests are root's: LXC may map them, and useradd gives them to no account. It gives others above them, since those
# below are enough for six accounts. An account that has some could change the files of guests, as their root.
{% set theirs = [] %}
{% for file, limit in {'/etc/subuid': 'SUB_UID_MAX', '/etc/subgid': 'SUB_GID_MAX'}.items() %}
{% for line in (salt['file.read'](file) if salt['file.file_exists'](file) else '').splitlines() %}
{% set f = line.split(':') %}
{% if f | length == 3 and f[0] not in ['root', '0'] and f[1] | int < 655949824 and f[1] | int + f[2] | int > 524288 %}
{% do theirs.append(f[0] ~ ' has ' ~ line ~ ' in ' ~ file) %}
{% endif %}
{% endfor %}
{{ file }}:
  file.append:
    - text: root:524288:655425536

{% if salt['file.file_exists']('/etc/login.defs') %}
{{ limit }} of useradd:
  file.replace:
    - name: /etc/login.defs
    - pattern: '^{{ limit }}\s.*$'
    - repl: '{{ limit }} 1878982655'
    - append_if_not_found: true
{% endif %}
{% endfor %}

only root has the user IDs of guests:
{% if theirs %}
  test.fail_without_changes:
    - name: {{ ('accounts of this node have user IDs of guests (524288 to 655949823): ' ~ theirs | join(', ') ~ '. No guest is made or ' ~
        'started until they have others: remove these lines, and run usermod --add-subuids 655949824-656015359 --add-subgids ' ~
        '655949824-656015359 for the first of the accounts, and 65536 more for each of the others') | json }}
{% else %}
  test.nop: []
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

# Pillar: guests:volume_group names the volume group of LVM in which new guests get volumes.
{% set volume_group = salt['pillar.get']('guests:volume_group', '') %}
{% if volume_group %}
lvm2:
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

{% if cloud.get('classes') %}
# Each minute, and before the run at boot, the node looks at the classes. Without an answer of the store nothing changes.
{% set dns = salt['pillar.get']('dns', {}) %}
/etc/systemd/system/corpus-members.service:
  file.managed:
    - mode: '0644'
    - contents: |
        [Unit]
        Description=Decide which members of classes of guests run on this node
        Wants=network-online.target
        After=network-online.target
        Before=corpus-guests.service

        [Service]
        Type=oneshot
        EnvironmentFile=-/etc/corpus/environment
        ExecStart=-/usr/bin/corpus-agent members --start{{ ' --all' if name in [dns.get('primary')] + dns.get('secondaries', []) else '' }}
        TimeoutStartSec=3min

        [Install]
        WantedBy=multi-user.target

/etc/systemd/system/corpus-members.timer:
  file.managed:
    - mode: '0644'
    - contents: |
        [Unit]
        Description=Decide each minute which members of classes run on this node

        [Timer]
        OnActiveSec=1min
        OnUnitInactiveSec=1min
        AccuracySec=5s
        RandomizedDelaySec=10s

        [Install]
        WantedBy=timers.target

corpus-members.service:
  service.enabled:
    - require:
      - file: /etc/systemd/system/corpus-members.service

corpus-members.timer:
  service.running:
    - enable: true
    - require:
      - file: /etc/systemd/system/corpus-members.timer

{% if members %}
/var/lib/corpus-guests/applied-members:
  file.managed:
    - makedirs: true
    - mode: '0600'
    - contents: {{ members.generation | json }}
    - order: last
{% endif %}
{% endif %}

# Which node this is, so that a wrong hostname does not give it the guests of another one (check).
/var/lib/corpus-guests/node:
  file.managed:
    - contents: {{ name }}
    - makedirs: true
    - mode: '0644'
    - replace: false

{% set ids = [] %}
{% for g in guests.values() if g.node == name and not g.get('from') %}
{% do ids.append(g.get('disk', g.id)) %}
{% endfor %}
guests that are not in the cloud:
  guest.only:
    - failhard: false
    - guests: {{ ids | json }}
    - deleted: {{ (cloud.get('deleted', {}).keys() | list + removed) | json }}

{% for guest, g in cloud.get('guests', {}).items() if g.get('copy') and g.old[-1].split('.')[0] == name %}
archive of {{ guest }}:
  guest.archived:
    - may_fail: true
    - name: {{ guest }}
    - disk: '{{ g.old[-1].split('.')[1] }}'
    - file: /var/lib/machines/{{ guest }}-{{ g.disk }}.tar
    - require:
      - guest: guests that are not in the cloud
{% endfor %}

# Root of a guest reaches its directory here through its mount. LXC makes mounts as root of the guest, which has to pass.
/var/lib/corpus-guests:
  file.directory:
    - makedirs: true
    - user: root
    - group: root
    - mode: '{{ '0711' if lxc else '0700' }}'

{% for guest, g in guests.items() if g.node == name and not g.get('from') %}
{% set image = cloud.images[g.image] %}
{% set tree = '/var/lib/corpus-images/' ~ image.digest.split(':')[1] %}
{% set uids = 524288 + (g.ssh_port - 40000) * 65536 %}
{% set record = '/var/lib/corpus-guests/' ~ guest ~ '.json' %}
{% set kept = '/var/lib/machines/.kept-' ~ guest ~ '-' ~ g.get('disk', g.id) %}
{% set made = salt['file.file_exists'](record) and salt['file.contains'](record, g.get('disk', g.id)) and
  salt['file.contains'](record, '"ready"') or salt['file.directory_exists'](kept) %}
{% set archive = '/var/lib/machines/' ~ guest ~ '-' ~ g.get('disk', '') ~ '.tar' %}
{% set begins = not made and (not g.get('copy') or salt['file.file_exists'](archive)) %}
{% set mark = '/var/lib/corpus-guests/' ~ guest ~ '/being-made' %}
{% set hooked = salt['file.directory_exists'](release ~ '/hooks/guest-created.d') and (begins or salt['file.file_exists'](mark)) %}
{% if not made and not g.get('copy') %}
image of {{ guest }}:
  cmd.run:
    - may_fail: true
    - name: corpus-agent image {{ image.project }} {{ image.version }} {{ image.digest }}
    - unless: test -d {{ tree }}
{% endif %}

# sshd of the guest takes keys only from a directory of its root's.
/var/lib/corpus-guests/{{ guest }}:
  file.directory:
    - may_fail: true
    - user: {{ uids }}
    - group: {{ uids }}
    - mode: '0755'
    - require:
      - file: /var/lib/corpus-guests

{% if begins %}
{{ hooks('guest-create', guest, g, 'file: /var/lib/corpus-guests/' ~ guest, 'guest: ' ~ guest) }}
{% if hooked %}
{{ mark }}:
  file.managed:
    - may_fail: true
    - replace: false
    - require:
      - file: /var/lib/corpus-guests/{{ guest }}
    - require_in:
      - guest: {{ guest }}
{% endif %}
{% endif %}
/var/lib/corpus-guests/{{ guest }}/authorized_keys:
  file.managed:
    - may_fail: true
    - contents: {{ (g.get('ssh_keys', []) | join('\n')) | json }}
    - user: {{ uids }}
    - group: {{ uids }}
    - mode: '0644'

{% set backup = '/var/lib/corpus-guests/' ~ guest ~ '/backup.json' %}
{% if g.get('backup_to') %}
{% set keep = {} %}
{% for one in g.get('backup_keep', []) %}{% do keep.update({one.split('=')[0]: one.split('=')[1] | int}) %}{% endfor %}
{% set settings = dict(salt['pillar.get']('guests:backups:' ~ guest, {}), repository=g.backup_to) %}
{% if keep %}{% do settings.update({'keep': keep}) %}{% endif %}
{% if g.get('backup_paths') %}{% do settings.update({'paths': g.backup_paths}) %}{% endif %}
{{ backup }}:
  file.managed:
    - may_fail: true
    - contents: {{ settings | json | json }}
    - user: {{ uids }}
    - group: {{ uids }}
    - mode: '0400'
    - show_changes: false
    - require:
      - file: /var/lib/corpus-guests/{{ guest }}
{% elif salt['file.file_exists'](backup) %}
{{ backup }}:
  file.absent:
    - may_fail: true
{% endif %}

/var/lib/corpus-guests/{{ guest }}/host0.network:
  file.managed:
    - may_fail: true
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
    - may_fail: true
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
{% if volume_group %}
    - volume_group: {{ volume_group | json }}
{% endif %}
    - driver: {{ node.driver }}
    - bridge: guests
    - uids: {{ uids }}
    - binds:
        /var/lib/corpus-guests/{{ guest }}: /etc/corpus-node
        /var/lib/corpus-guests/{{ guest }}/host0.network: /etc/systemd/network/10-corpus.network
{% if g.get('mounts') %}
    - mounts: {{ g.mounts | json }}
{% endif %}
    - copies: {{ copies | json }}
    - enable: {{ (['systemd-networkd.service'] + deploys + salt['pillar.get']('guests:enable', [])) | unique | json }}
    - contents:
        /etc/ssh/sshd_config.d/corpus.conf: |
          AuthorizedKeysFile .ssh/authorized_keys /etc/corpus-node/authorized_keys
        /etc/systemd/system/ssh.service.d/corpus.conf: |
          [Service]
          ExecStartPre=
          ExecStartPre=/usr/bin/ssh-keygen -A
          ExecStartPre=/usr/sbin/sshd -t
{% if own.get('store') and '/etc/corpus/agent.yaml' not in copies %}
        /etc/corpus/agent.yaml: |
          store: {{ own.store | json }}
{% endif %}
        /etc/resolv.conf: |
          nameserver {{ salt['pillar.get']('guests:resolver', '9.9.9.9') }}
    - require:
      - test: only root has the user IDs of guests
{% if not made and not g.get('copy') %}
      - cmd: image of {{ guest }}
{% endif %}

{% set unit = ('corpus-lxc' if lxc else 'systemd-nspawn') ~ '@' ~ guest %}
{{ unit }}:
  service.running:
    - may_fail: true
    - enable: false
{% if g.get('copy') %}
    - onlyif: grep -q '"disk":"{{ g.disk }}".*"ready"' {{ record }}
{% endif %}
    - require:
      - file: /var/lib/corpus-guests/{{ guest }}/authorized_keys
      - file: /var/lib/corpus-guests/{{ guest }}/host0.network
    - watch:
      - guest: {{ guest }}
{% if hooked %}
{{ hooks('guest-created', guest, g, 'service: ' ~ unit, 'cmd: ' ~ guest ~ ' was made') }}
{{ guest }} was made:
  cmd.run:
    - may_fail: true
    - name: rm {{ mark }}
    - require:
      - service: {{ unit }}
{% endif %}
{% endfor %}
{% endif %}
