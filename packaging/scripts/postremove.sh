#!/bin/sh
# After a purge, which only dpkg knows, what the host remembered goes. Releases below /srv are the operator's.
set -e
if [ "$1" = purge ]; then
  rm -rf --one-file-system /var/lib/corpus
  rm -f /etc/systemd/system/timers.target.wants/corpus-agent.timer
fi
[ ! -d /run/systemd/system ] || systemctl daemon-reload
