7: # error: ID 7 is of type int, and an ID is a string // put it in quotes
  test.nop: []
true: # error: ID True is of type bool, and an ID is a string // put it in quotes
  test.nop: []
