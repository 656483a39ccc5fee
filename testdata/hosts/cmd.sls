# unknown: Once, Unless it is there
Once:
  cmd.run:
    - name: echo once > /var/lib/once
    - creates: /var/lib/once

/var/lib/mailbox:
  file.directory:
    - user: daemon

Unless it is there:
  cmd.run:
    - name: touch letter && id -un > writer
    - cwd: /var/lib/mailbox
    - unless: test -e /var/lib/mailbox/letter
    - umask: '027'
    - runas: daemon
    - require:
      - file: /var/lib/mailbox
