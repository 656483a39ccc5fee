# Installs the staged agent, and the files of an archive on standard input. Arguments: binary, package or none; the name and the
# SHA-256 of the staged agent; the new hostname or nothing; the SHA-256 of the agent.yaml that is to be replaced, or nothing.
# Each file is replaced at once, after it is on the disk: whenever this ends, a file is the old or the new one.
set -eu
umask 077
r=
kind=$1 digest=$3 name=$4 config=$5
stage=$r/var/lib/corpus-init
part=$stage/$2
new=$stage/new
sum() { [ ! -e "$1" ] || sha256sum <"$1" | cut -c 1-64; }
put() {
  (umask 022; mkdir -p "${2%/*}")
  rm -f "$2.corpus-init"
  (set -C; cat <"$1" >"$2.corpus-init")
  chmod "$3" "$2.corpus-init"
  sync "$2.corpus-init"
  mv -f "$2.corpus-init" "$2"
  sync "${2%/*}"
}
mkdir -p "$stage"
exec 9<"$stage" # an earlier command may still be at work here, although its connection was cut
flock -w 180 9 || exit 92
rm -rf "$new"
mkdir -p "$new"
timeout 120 tar -xf - -C "$new" --no-same-owner || exit 93
[ -e "$new/end" ] || exit 93
case $kind in
binary)
  program=$r/usr/bin/.corpus-agent.corpus-init
  rm -f "$program"
  (set -C; cat <"$part" >"$program")
  [ "$(sum "$program")" = "$digest" ] || { rm -f "$part" "$program"; exit 94; }
  chmod 755 "$program"
  "$program" version >/dev/null || { rm -f "$program"; exit 96; }
  sync "$program"
  mv -f "$program" "$r/usr/bin/corpus-agent"
  sync "$r/usr/bin"
  ;;
package)
  cat <"$part" >"$new/agent.deb"
  [ "$(sum "$new/agent.deb")" = "$digest" ] || { rm -f "$part"; exit 94; }
  DEBIAN_FRONTEND=noninteractive dpkg --force-confold -i "$new/agent.deb" >&2 </dev/null 9<&-
  ;;
esac
rm -f "$stage"/agent-*
if [ -n "$name" ]; then
  printf '%s\n' "$name" >"$new/hostname"
  if ! grep -qwF -- "$name" "$r/etc/hosts"; then
    { grep -v '^127\.0\.1\.1[[:space:]]' "$r/etc/hosts" || :; printf '127.0.1.1\t%s\n' "$name"; } >"$new/hosts"
    put "$new/hosts" "$r/etc/hosts" 644
  fi
  if [ -d "$r/etc/cloud/cloud.cfg.d" ]; then # cloud-init would change the name back
    echo 'preserve_hostname: true' >"$new/cloud.cfg"
    put "$new/cloud.cfg" "$r/etc/cloud/cloud.cfg.d/99-corpus-hostname.cfg" 644
  fi
  hostname "$name"
  put "$new/hostname" "$r/etc/hostname" 644
fi
[ ! -e "$new/environment" ] || put "$new/environment" "$r/etc/corpus/environment" 600
if [ -e "$new/agent.yaml" ]; then
  mode=640
  [ ! -e "$r/etc/corpus/agent.yaml" ] || mode=$(stat -c %a "$r/etc/corpus/agent.yaml")
  if [ -n "$config" ] || [ "$kind" != package ]; then # a package has written a file without settings
    [ "$(sum "$r/etc/corpus/agent.yaml")" = "$config" ] || exit 97
  fi
  answer=$("$r/usr/bin/corpus-agent" config check --config "$new/agent.yaml" 2>&1 </dev/null) ||
    { printf '%s\n' "$answer" >&2; exit 98; }
  put "$new/agent.yaml" "$r/etc/corpus/agent.yaml" "$mode"
fi
for unit in corpus-agent.service corpus-agent.timer; do
  [ ! -e "$new/$unit" ] || put "$new/$unit" "$r/etc/systemd/system/$unit" 644
done
generator=corpus-agent-generator
[ ! -e "$new/$generator" ] || put "$new/$generator" "$r/etc/systemd/system-generators/$generator" 755
put "$new/root" "$stage/root" 600
systemctl daemon-reload
systemctl --quiet enable corpus-agent.timer
systemctl start corpus-agent.timer
rm -rf "$new"
