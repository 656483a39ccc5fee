# haproxy leads HTTP and HTTPS to guests by name, and one port of the node to the SSH of each guest. A node that is shared with other
# purposes, such as a developer's machine (pillar node:shared), has none: its guests are reached from it, by their own addresses.
{% import_yaml 'cloud.yaml' as cloud %}
{% set node = cloud.get('nodes', {}).get(grains.get('service_node')) %}
{% if node and not salt['pillar.get']('node:shared', false) %}
haproxy:
  pkg.installed: []
  service.running:
    - enable: true
    - reload: true
    - may_fail: true # a user of the node may have a port, which must not keep the rest of a version off the node
    - require:
      - pkg: haproxy
    - watch:
      - file: /etc/haproxy/haproxy.cfg

/etc/haproxy/haproxy.cfg:
  file.managed:
    - source: salt://haproxy.cfg.jinja
    - template: jinja
    - mode: '0644'
    - check_cmd: haproxy -c -f
    - require:
      - pkg: haproxy

# The ports of guests are kept from outgoing connections, which would get some of them by chance.
{% set kept = '/proc/sys/net/ipv4/ip_local_reserved_ports' %}
{% set others = salt['file.read'](kept).strip() if salt['file.file_exists'](kept) else '' %}
net.ipv4.ip_local_reserved_ports:
  sysctl.present:
    - value: '{{ others if '40000-50000' in others else (others ~ ',40000-50000').strip(',') }}'

# haproxy keeps its old configuration, and its reload succeeds, if a program of any user has a port of the new one. Each run looks.
{% set missing %}missing() {
          group=$(systemctl show -P ControlGroup haproxy)
          { sed 's/^/own /' /sys/fs/cgroup$group/cgroup.procs /sys/fs/cgroup/systemd$group/cgroup.procs
            ss -Hltnp
            cat /etc/haproxy/haproxy.cfg; } 2>/dev/null | awk '
            $1 == "own" { own[$2] = 1 }
            $1 == "LISTEN" {
              port = $4; sub(/.*:/, "", port)
              while (match($0, /pid=[0-9]+/)) {
                if (substr($0, RSTART + 4, RLENGTH - 4) in own) has[port] = 1
                $0 = substr($0, RSTART + RLENGTH)
              }
            }
            $1 == "bind" { port = $2; sub(/.*:/, "", port); if (!(port in has)) print port }'
        }
        none() {
          for try in $(seq 20); do
            test -n "$(missing)" || return 0
            sleep 0.3
          done
          false
        }{% endset %}
haproxy listens on all ports:
  cmd.run:
    - name: |
        {{ missing }}
        systemctl reload-or-restart haproxy
        none && exit
        for port in $(missing); do
          echo "haproxy does not listen on port $port, and has its old configuration" >&2
          for pid in $(ss -Htanp "sport = :$port" | grep -o 'pid=[0-9]*' | cut -d = -f 2 | sort -u); do
            echo "port $port is in use by process $pid ($(cat /proc/$pid/comm)) of user $(stat -c %U /proc/$pid): end it" >&2
          done
        done
        exit 1
    - unless: |
        {{ missing }}
        none
    - may_fail: true
    - require:
      - file: /etc/haproxy/haproxy.cfg
      - sysctl: net.ipv4.ip_local_reserved_ports
{% endif %}
