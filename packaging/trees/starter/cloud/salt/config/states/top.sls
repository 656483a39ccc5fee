base:
  '*':
    - check
    - hosts
    - network
    - firewall
    - guests
    - proxy
    - dns
