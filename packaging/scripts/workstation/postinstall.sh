#!/bin/sh
# After an install or an upgrade. The timers are templates, which nothing enables: whose keys sign is for a person to say.
set -e
[ ! -d /run/systemd/system ] || systemctl daemon-reload
