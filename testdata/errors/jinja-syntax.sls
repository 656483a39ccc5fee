web:
  test.nop:
    - name: {{ 'a' if }} # error: unexpected 'end of print statement'
