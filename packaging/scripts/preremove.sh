#!/bin/sh
# Before a removal, but not before the new version of an upgrade: a deploy may be what upgrades us.
set -e
case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac
[ -d /run/systemd/system ] || exit 0
systemctl disable --now corpus-agent.timer >/dev/null 2>&1 || true
