web: # error: ID web holds a list, and a mapping of states was expected // write `state.function:` below it, and below that its arguments
  - test.nop
db: pkg # error: ID db holds "pkg", and a state was expected // write `state.function`, such as pkg.installed
cache:
  test.nop: # error: test.nop of cache ends with a colon and has no arguments // leave the colon out, or write `test.nop: []`
name:
  test: [] # error: test of name names no function // write test.FUNCTION: in its place
mail:
  pkg.installed: # error: "name web" in pkg of mail is not a function // if it is an argument, it lacks a colon
    - name web
both:
  pkg: # error: pkg of both names more than one function: installed, removed // give each an ID of its own
    - installed
    - removed
colon:
  cmd.run: # error: "name:x" in cmd of colon is not a function // write `- name: ...`
    - name:x
