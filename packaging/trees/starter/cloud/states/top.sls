base:
  '*':
    - hosts
    - network
    - firewall
    - guests
    - proxy
