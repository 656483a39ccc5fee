#!jinja|genshi # error: there is no renderer "genshi" here // converge this host with `engine: salt-call`, or rewrite the file
