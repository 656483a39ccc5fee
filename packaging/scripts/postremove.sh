#!/bin/sh
# After a purge what the host remembered goes; releases under /srv are the operator's.
set -e
if [ "$1" = purge ]; then
  rm -rf /var/lib/corpus
fi
[ ! -d /run/systemd/system ] || systemctl daemon-reload
