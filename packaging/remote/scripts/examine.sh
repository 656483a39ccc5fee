# Prints what a host has, a line each, and changes nothing. Arguments: the name of a staged agent.
set -eu
r=
say() { printf 'corpus:%s=%s\n' "$1" "$2"; }
sum() { [ ! -e "$1" ] || sha256sum <"$1" | cut -c 1-64; }
free() { df -Pk "$1" | tail -n 1 | tr -s ' ' | cut -d ' ' -f 4; }
say system "$(uname -s)"
say machine "$(uname -m)"
say now "$(date +%s)"
if [ -s "$r/etc/hostname" ]; then say hostname "$(head -n 1 "$r/etc/hostname")"; else say hostname "$(uname -n)"; fi
[ ! -e "$r/etc/os-release" ] || (. "$r/etc/os-release"; say distribution "${ID-} ${ID_LIKE-}")
[ ! -d "$r/run/systemd/system" ] || say systemd yes
say free_usr "$(free "$r/usr/bin")"
say free_var "$(free "$r/var/lib")"
say free_etc "$(free "$r/etc")"
say agent "$(sum "$r/usr/bin/corpus-agent")"
say package "$(dpkg-query -W -f '${db:Status-Abbrev}' corpus-agent 2>/dev/null || true)"
part=$r/var/lib/corpus-init/$1
if [ -e "$part" ]; then say part "$(stat -c %s "$part")"; fi
if [ -e "$r/etc/corpus/agent.yaml" ]; then say config "$(base64 -w 0 <"$r/etc/corpus/agent.yaml")"; fi
say environment "$(sum "$r/etc/corpus/environment")"
for unit in corpus-agent.service corpus-agent.timer; do say "$unit" "$(sum "$r/etc/systemd/system/$unit")"; done
say corpus-agent-generator "$(sum "$r/etc/systemd/system-generators/corpus-agent-generator")"
say timer "$(systemctl is-enabled corpus-agent.timer 2>/dev/null || true) $(systemctl is-active corpus-agent.timer 2>/dev/null || true)"
for root in root.json given; do [ ! -e "$r/var/lib/corpus/trust/$root" ] || say introduced yes; done
say end yes
