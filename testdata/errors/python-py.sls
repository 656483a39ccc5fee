#!py
def run():
    return {"a": 1 / 0} # error: renderer py: ZeroDivisionError: division by zero // docs/python.md
