web:
  test.nop:
    - name: {{ 'a' | uper }} # error: No filter named 'uper'. // did you mean "upper"?
