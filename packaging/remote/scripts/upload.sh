# Continues the copy of the agent from standard input. Arguments: its name, the bytes that the host has, all bytes, the
# SHA-256. An earlier copy whose connection was cut, and which does not know that yet, writes to a file without a name.
set -eu
umask 077
r=
stage=$r/var/lib/corpus-init
part=$stage/$1
mkdir -p "$stage"
rm -f "$part.next"
if [ "$2" -gt 0 ]; then head -c "$2" "$part" >"$part.next"; else : >"$part.next"; fi
mv -f "$part.next" "$part"
cat >>"$part" || exit 95
[ "$(stat -c %s "$part")" = "$3" ] || exit 93
[ "$(sha256sum <"$part" | cut -c 1-64)" = "$4" ] || { rm -f "$part"; exit 94; }
sync "$part" "$stage"
