/etc/app:
  file.directory:
    - mode: '0750'
    - group: adm

/etc/app/app.conf:
  file.managed:
    - source: salt://files/app.conf.j2
    - template: jinja
    - mode: '0640'
    - group: adm
    - context:
        workers: 4

/etc/app/conf.d:
  file.recurse:
    - source: salt://files/tree
    - file_mode: '0644'
    - dir_mode: '0755'

/etc/app/current.conf:
  file.symlink:
    - target: app.conf

/etc/app/data.json:
  file.serialize:
    - serializer: json
    - dataset:
        listen: [80, 443]
        name: app

/etc/bash.bashrc:
  file.append:
    - text: '# A line of ours.'

/etc/login.defs:
  file.replace:
    - pattern: '^#?\s*LOGIN_RETRIES.*$'
    - repl: 'LOGIN_RETRIES 3'
    - append_if_not_found: True

/etc/hosts:
  file.blockreplace:
    - marker_start: '# ours begins'
    - marker_end: '# ours ends'
    - content: '192.0.2.8 cache.example.com'
    - append_if_not_found: True

/etc/nsswitch.conf:
  file.comment:
    - regex: '^netgroup:'

/etc/profile:
  file.line:
    - mode: ensure
    - after: '^# /etc/profile.*'
    - content: 'TMOUT=900'

/etc/deluser.conf:
  file.keyvalue:
    - key: REMOVE_HOME
    - value: '0'
    - separator: '='
    - append_if_not_found: True
    - ignore_if_missing: True

/etc/motd:
  file.absent: []

/etc/app/copy.conf:
  file.copy:
    - source: /etc/host.conf
