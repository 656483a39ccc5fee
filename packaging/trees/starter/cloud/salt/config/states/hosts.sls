# A node finds its guests by their names, as NAME.guests and in the domain of the cloud. The block of /etc/hosts has all of them and no
# others: addresses of guests that were deleted or have moved are soon those of others.
{% from 'members.jinja' import cloud, guests with context %}
{% set node = cloud.get('nodes', {}).get(grains.get('service_node')) %}
{% if node %}
hosts file:
  file.managed:
    - name: /etc/hosts
    - replace: false
    - mode: '0644'

{% set octets = node.range4.split('/')[1] | int // 8 %}
{% if node.range4.split('/')[1] | int == octets * 8 %}
guests without a comment are of earlier states:
  file.replace:
    - name: /etc/hosts
    - pattern: '^{{ node.range4.split('.')[:octets] | join('[.]') }}([.][0-9]+){{ '{' ~ (4 - octets) ~ '}' }}[ \t][^#\n]*\n'
    - repl: ''
    - ignore_if_missing: true
    - require_in:
      - file: guests in /etc/hosts
{% endif %}

guests in /etc/hosts:
  file.blockreplace:
    - name: /etc/hosts
    - marker_start: '# Guests of this node, written by corpus-agent'
    - marker_end: '# End of the guests of this node'
    - append_if_not_found: true
    - content: |
        # NAME.guests, and names in the domain of the cloud
{%- for name, guest in guests.items() if guest.node == grains.get('service_node') %}
        {{ guest.address4 }} {{ name }}.guests{{ ' %s.guests.%s %s.%s' | format(name, cloud.domain, name, cloud.domain) if cloud.get('domain') }} # guest
{%- endfor %}
{% endif %}
