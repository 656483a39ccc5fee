a:
  mystate.present: [] # error: mystate.present of a: 'mystate.present' is not available. // _states
