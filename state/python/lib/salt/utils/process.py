import os


def os_is_running(pid):
    try:
        os.kill(int(pid), 0)
        return True
    except OSError:
        return False


def clean_proc(proc, wait_for_kill=10):
    proc.terminate()
