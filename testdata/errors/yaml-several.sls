a:
  test.nop:
    - name: "open # error: found unexpected end of stream in a quoted value // close it with
b: [1, 2
c: # error: expected ',' or ']' for the bracket opened on line 4, but found ':' // close the bracket
  test.nop:
    - x: {{ 'd: e' }}
