from salt.utils.yaml import *  # noqa: F401,F403
from salt.utils.yaml import dump, load, safe_dump  # noqa: F401
