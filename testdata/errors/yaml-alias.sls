a:
  test.nop:
    - name: *nobody # error: found undefined alias 'nobody' // define it before with &nobody, or put a value that starts with * in quotes
