#!py # error: renderer py: the file is a Python program, and this engine runs none // converge this host with `engine: salt-call`, or rewrite the file
def run():
    return {}
