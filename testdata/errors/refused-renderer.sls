#!jinja|mako # error: there is no renderer "mako" here // converge this host with `engine: salt-call`, or rewrite the file
a: b
