motd: A host of the test.
tools: {chrony: true, upgrades: true, fail2ban: true, postfix: true, exporter: true, nftables: true, haproxy: true,
  bind: true, resolver: true, restic: true, slapd: true, sssd: true, nsupdate: true}
chrony: {containers: true, servers: [172.31.0.1]}
upgrades: {mail: ops@example.org}
fail2ban: {ignore: [172.31.0.0/24], jails: {sshd: {maxretry: 3}}}
postfix: {relay: '[mail.example.org]:587', origin: example.org, root: ops@example.org, user: host, password: hunter2}
exporter: {arguments: [--no-collector.wifi]}
nftables:
  tcp: [22, 53, 80, 389]
  udp: [53]
  allow:
    - {from: 172.31.0.0/24, tcp: [9100]}
    - {from: '2001:db8::/64', all: true}
haproxy:
  sections:
    frontend www: ['bind :80', default_backend app]
    backend app: [server one 127.0.0.1:9100]
bind:
  keys:
    transfer: {secret: c2VjcmV0IG9mIHRyYW5zZmVycw==}
    changes: {secret: c2VjcmV0IG9mIGNoYW5nZXMgLi4=}
  zones:
    example.org:
      primary: 172.31.0.11
      secondaries: [172.31.0.12]
      key: transfer
      servers: [ns1.example.org., ns2.example.org.]
      records:
        '@': {MX: 10 mail, TXT: '"v=spf1 mx -all"'}
        ns1: {A: 172.31.0.11}
        ns2: {A: 172.31.0.12}
        new: {A: 172.31.0.21}
        mail: {A: 172.31.0.20, AAAA: '2001:db8::20'}
        www: {CNAME: mail}
    172.31.0.0/24: {primary: 172.31.0.11, secondaries: [172.31.0.12], key: transfer, servers: [ns1.example.org.]}
    '2001:db8::/32': {primary: 172.31.0.11, secondaries: [172.31.0.12], key: transfer, servers: [ns1.example.org.]}
    dyn.example.org: {primary: 172.31.0.11, servers: [ns1.example.org.], updates: changes}
resolver:
  zones: {example.org: [172.31.0.11], 172.31.0.0/24: [172.31.0.11]}
  search: [example.org]
restic: {password: 'it''s secret', environment: {A_KEY: 'x y'}}
nsupdate:
  server: 172.31.0.11
  zone: dyn.example.org
  key: {name: changes, secret: c2VjcmV0IG9mIGNoYW5nZXMgLi4=}
  records:
    two.dyn.example.org: {A: [172.31.0.12, 172.31.0.13]}
ldap:
  base: dc=example,dc=org
  server: ldap://172.31.0.11
  tls: false
  project: shop
  logins: [blog]
  users:
    alice: {uid: 10001, name: Alice Ash, keys: [ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA alice]}
    bob: {uid: 10002, name: Bob Birch}
  projects:
    shop:
      gid: 20001
      members: [alice]
      sudo: {all: {options: ['!authenticate']}}
    blog:
      gid: 20002
      members: [bob]
      sudo: {all: {options: ['!authenticate']}, web: {users: [bob], commands: [/usr/bin/systemctl restart nginx]}}
