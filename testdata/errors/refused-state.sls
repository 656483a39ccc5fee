a:
  mystate.present: [] # error: mystate.present of a: _states/mystate.py is a Python program, which this engine does not run // converge this host with `engine: salt-call`, or write it as SLS
