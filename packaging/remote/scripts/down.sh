# Stops guests, and what would start them again. Arguments: their units.
set -eu
off() { systemctl --quiet disable --now "$1" 2>/dev/null || :; } # it may not be there
off corpus-agent.timer
off corpus-guests.service
systemctl stop corpus-agent.service 2>/dev/null || :
for unit; do
  systemctl stop "$unit" || [ "$(systemctl is-active "$unit")" != active ] # it may not be there
done
