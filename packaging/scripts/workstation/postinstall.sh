#!/bin/sh
# After an install or an upgrade. The timers are templates, and a person enables one for the keys that sign.
set -e
[ ! -d /run/systemd/system ] || systemctl daemon-reload
