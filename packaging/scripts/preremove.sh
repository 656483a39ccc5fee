#!/bin/sh
# Before a removal, but not before an upgrade. A running deploy is not stopped, since one of its states may be removing this
# package. A deb that is installed again finds the timer as it was.
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
# Only dpkg distinguishes a removal from a purge, and runs postremove.sh for the latter.
[ "$1" = remove ] || systemctl --no-reload disable corpus-agent.timer >/dev/null 2>&1 || true
