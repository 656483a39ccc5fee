a
  cmd.run: # error: expected the end of the document // ends with a colon
    - name: x
