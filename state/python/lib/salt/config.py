"""The options of the run. There is no master and no other minion, whose files these functions would read under Salt."""
import sys


def _opts():
    main = sys.modules["__main__"]
    return main.WORLD.opts


DEFAULT_MINION_OPTS = {"id": "", "file_client": "local", "hash_type": "sha256"}
DEFAULT_MASTER_OPTS = {}


def minion_config(path=None, *args, **kwargs):
    return dict(_opts())


def client_config(path=None, *args, **kwargs):
    return dict(_opts())


def master_config(path=None, *args, **kwargs):
    return dict(_opts())


def get_id(opts, *args, **kwargs):
    return _opts().get("id"), False
