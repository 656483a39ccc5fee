{% set backup = pillar['backup'] %}

Ensure there is a backup script:
  file.managed:
    - name: /usr/local/sbin/backup-data
    - source: salt://base/files/backup-data.sh
    - mode: '0755'
    - makedirs: True

Ensure data is backed up every night:
  cron.present:
    - name: /usr/local/sbin/backup-data /srv/service/data {{ backup.target }}
    - identifier: backup-data
    - user: root
    - minute: {{ backup.minute }}
    - hour: {{ backup.hour }}
    - require:
      - file: Ensure there is a backup script
