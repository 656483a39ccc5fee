a:
  file.managed:
    - name: /x
  file.absent: # error: ID a declares state file twice // give the second one an ID of its own
    - name: /y
