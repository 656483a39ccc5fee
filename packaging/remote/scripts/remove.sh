# Removes what corpus dev up made. Arguments: the start of the addresses of guests, then paths.
set -eu
r=
hosts=$1
shift
for unit in corpus-agent.timer corpus-guests.service corpus-guests-firewall.service; do
  systemctl --quiet disable --now "$unit" 2>/dev/null || :
done
if [ -n "$hosts" ] && grep -qF "$hosts" "$r/etc/hosts"; then
  rm -f "$r/etc/hosts.corpus-init"
  (set -C; awk -v start="$hosts" 'index($0, start) != 1' "$r/etc/hosts" >"$r/etc/hosts.corpus-init")
  chmod 644 "$r/etc/hosts.corpus-init"
  sync "$r/etc/hosts.corpus-init"
  mv -f "$r/etc/hosts.corpus-init" "$r/etc/hosts"
fi
for path; do
  rm -rf --one-file-system -- "$r$path"
  [ "$path" != /etc/systemd/network/40-guests.netdev ] || ip link delete guests 2>/dev/null || :
done
systemctl daemon-reload
