#!/bin/sh
# After an install or an upgrade. The timer does nothing until the host is bootstrapped, so it is enabled at once. The
# host's presets decide about that at the first install; an upgrade keeps the administrator's choice.
#
# Arguments of deb: "configure" and, for an upgrade, the previous version. Of rpm: 1, or 2 for an upgrade. apk and
# archlinux call this for the first install only.
set -e
case "$1:${2-}" in
configure:?* | 2:* | abort-*) first=no ;;
*) first=yes ;;
esac
# The default configuration of a deb, which explains the settings. An existing file, such as cloud-init's, is kept, and a
# file that was removed on purpose is not created again.
default=/usr/share/corpus-agent/agent.yaml
if [ $first = yes ] && [ -e $default ] && [ ! -e /etc/corpus/agent.yaml ] && [ ! -L /etc/corpus/agent.yaml ]; then
  install -d -m 755 /etc/corpus
  install -m 640 $default /etc/corpus/agent.yaml
fi
# The URL of a webhook is often a secret. Older packages let every user read the file.
if [ -f /etc/corpus/agent.yaml ] && [ ! -L /etc/corpus/agent.yaml ] && [ "$(stat -c %a:%u /etc/corpus/agent.yaml)" = 644:0 ]; then
  chmod 640 /etc/corpus/agent.yaml
fi
# Before 0.0.1 this package held the other program as well.
if [ "$1" = configure ] && [ -n "${2-}" ] && dpkg --compare-versions "$2" lt 0.0.1~snapshot && [ ! -e /usr/bin/corpus ]; then
  echo "corpus-agent: the program corpus is in a package of its own now, corpus"
fi
command -v systemctl >/dev/null || exit 0
# Presets are files, so they take effect in an image during its build, too.
[ $first = no ] || systemctl --no-reload preset corpus-agent.timer >/dev/null 2>&1 || true
# Only root may read the state directory. Earlier versions let every user read some of it.
[ ! -d /var/lib/corpus ] || chmod 700 /var/lib/corpus
ran=/var/lib/corpus/timer-ran-before-removal
start=$first
[ ! -e $ran ] || start=yes
rm -f $ran
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
if [ $start = yes ] && systemctl is-enabled --quiet corpus-agent.timer 2>/dev/null; then
  systemctl start corpus-agent.timer || true
fi
