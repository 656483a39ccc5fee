motd: This host is managed by corpus-agent. Changes by hand are overwritten.

# What every host has. README.md lists the others; docs/base.md has an example for each.
tools:
  chrony: true
