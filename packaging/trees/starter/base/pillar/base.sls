motd: This host is managed by corpus-agent. Changes by hand are overwritten.
