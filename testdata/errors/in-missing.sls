web:
  test.nop:
    - require_in: # error: require_in of web: there is no ID "nosuch" in this run // include the SLS that declares it, or correct the ID
      - test: nosuch
