#!/bin/sh
# After a purge, which only dpkg has, the configuration and the state directory are removed. Releases below /srv, and files
# beside the configuration, such as credentials, belong to the operator: they are kept and listed.
set -e
if [ "$1" = purge ]; then
  rm -rf --one-file-system /var/lib/corpus
  rm -f /etc/corpus/agent.yaml /etc/systemd/system/timers.target.wants/corpus-agent.timer
  rmdir /etc/corpus 2>/dev/null || true
  for left in /etc/corpus/* /etc/systemd/system/corpus-agent.service.d /etc/systemd/system/corpus-agent.timer.d /srv/projects; do
    [ ! -e "$left" ] || echo "corpus-agent: $left stays; remove it by hand if nothing needs it"
  done
fi
[ ! -d /run/systemd/system ] || systemctl daemon-reload
