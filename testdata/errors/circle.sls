a:
  test.nop: # error: requisites go round in a circle: test: a -> test: b -> test: a // take one of these requisites out
    - require:
      - test: b
b:
  test.nop:
    - require:
      - test: a
