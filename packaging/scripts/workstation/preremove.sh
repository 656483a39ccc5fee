#!/bin/sh
# Before a removal, but not before the new version of an upgrade. A running refresh is not stopped.
set -e
case "$1" in
upgrade | deconfigure | failed-upgrade | 1) exit 0 ;;
esac
[ ! -d /run/systemd/system ] || systemctl stop 'corpus-refresh@*.timer' || true
