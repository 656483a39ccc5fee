/x:
  file.managed:
    - contnets: x # error: file.managed has no argument contnets: did you mean "contents"?
    - mode: [1] # error: argument mode of file.managed: [1] is not a file mode; write it in quotes, such as '0644'
