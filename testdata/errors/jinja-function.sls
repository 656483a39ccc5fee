web:
  test.nop:
    - name: {{ salt['pilar.get']('x') }} # error: there is no function pilar.get // did you mean "pillar.get"?
