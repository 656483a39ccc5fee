a:
  test.nop: # error: requisites form a cycle: test: a -> test: b -> test: a // remove one of these requisites
    - require:
      - test: b
b:
  test.nop:
    - require:
      - test: a
