{% set port = 80 %}
web:
  test.nop:
    - name: {{ prot }} # error: 'prot' is undefined // did you mean "port"?
