a:
  test.nop:
    - x: {{ salt["mymod.fun"]() }} # error: 'mymod.fun' is not available. // _modules
