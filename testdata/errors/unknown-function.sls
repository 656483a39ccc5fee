a:
  file.manged: # error: file.manged of a: no such state function // did you mean "file.managed"?
    - name: /x
b:
  pgk.installed: [] # error: pgk.installed of b: no such state function // did you mean "pkg.installed"?
