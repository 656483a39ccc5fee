{% if grains.os == 'Debian' %} # error: Unexpected end of template. Jinja was looking for the following tags: 'elif' or 'else' or 'endif'. The innermost block that needs to be closed is 'if'. (on line 3) // the if of line 1 is not closed: add
web:
  test.nop: []
