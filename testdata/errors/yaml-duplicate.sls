web:
  test.nop: []
web: # error: found conflicting ID 'web': the key is already on line 1 // merge the two, or rename one of them
  test.nop: []
