#!jinja|stateconf # error: there is no renderer "stateconf" here // converge this host with `engine: salt-call`, or rewrite the file
