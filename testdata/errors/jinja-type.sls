web:
  test.nop:
    - name: {{ 1 + 'a' }} # error: unsupported operand type(s) for +: 'int' and 'str' // look at what the values are:
