#!py # error: renderer py: the file is a Python program, which this engine does not run // converge this host with `engine: salt-call`, or rewrite the file
def run():
    return {}
