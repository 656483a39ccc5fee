{% set site = {'items': {'x': 1}} %}
a:
  test.nop:
    - name: {{ site.items.x }} # error: has no attribute 'x' // write ['items'] for the key
