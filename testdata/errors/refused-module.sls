a:
  test.nop:
    - x: {{ salt["mymod.fun"]() }} # error: _modules/mymod.py is a Python program, and this engine runs none // converge this host with `engine: salt-call`, or write it as SLS
