# A secondary and nothing else.
tools: {chrony: false, upgrades: false, fail2ban: false, postfix: false, exporter: false, nftables: false, haproxy: false,
  resolver: false, restic: false, slapd: false, sssd: false, nsupdate: false}
