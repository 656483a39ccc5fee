a:
  cmd.run
    - name: x # error: expected a key of the mapping // ends with a colon
