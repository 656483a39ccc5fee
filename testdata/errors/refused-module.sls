a:
  test.nop:
    - x: {{ salt["mymod.fun"]() }} # error: _modules/mymod.py is a Python program, which this engine does not run // converge this host with `engine: salt-call`, or write it as SLS
