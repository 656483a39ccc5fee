#!/bin/sh
# Before a removal, but not before the new version of an upgrade. A deploy that is under way is left
# alone: it may be what removes us. A deb that comes back later finds the timer as it was.
set -e
case "$1" in
upgrade | deconfigure | failed-upgrade | 1) exit 0 ;;
esac
[ -d /run/systemd/system ] || exit 0
if [ "$1" = remove ] && systemctl is-active --quiet corpus-agent.timer; then
  install -d -m 700 /var/lib/corpus
  : > /var/lib/corpus/timer-ran-before-removal
fi
systemctl stop corpus-agent.timer || true
# Only dpkg tells a removal from a purge, and calls again for that.
[ "$1" = remove ] || systemctl --no-reload disable corpus-agent.timer >/dev/null 2>&1 || true
