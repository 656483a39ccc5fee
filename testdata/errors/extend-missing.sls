extend:
  wbe: # error: the extension of wbe: there is no ID "wbe" in this run // did you mean "web"?
    test:
      - name: x
web:
  test.nop: []
