# Runs the agent, with the staged root of trust if there is one. A run that is under way is waited for: it may be that of an
# earlier command, whose connection was cut.
set -eu
r=
stage=$r/var/lib/corpus-init
set --
[ ! -e "$stage/root" ] || set -- --trust-root "$stage/root"
tries=0
while :; do
  code=0
  "$r/usr/bin/corpus-agent" deploy "$@" </dev/null >&2 || code=$?
  tries=$((tries + 1))
  if [ $code != 6 ] || [ $tries -ge 120 ]; then break; fi
  sleep 5
done
rm -rf "$stage"
exit $code
