web:
  test.nop: # error: test.nop of web holds a dict, and a list of arguments was expected // write each argument as `- name: value`
    name: x
