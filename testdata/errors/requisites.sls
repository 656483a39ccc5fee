web:
  test.nop:
    - require: # error: require of web names file.managed: db, and a requisite names a state without its function // write file: db # error: require of web: there is no test: db2 // include the SLS
      - test: db2
      - file.managed: db
    - watch: db # error: watch of web is a str, and a list was expected // write `- watch:` and below it `- state: id`
db:
  test.nop: []
