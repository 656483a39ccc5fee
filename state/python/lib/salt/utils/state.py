def check_result(running, recurse=False, highstate=None):
    """Whether no state failed."""
    if not isinstance(running, dict) or not running:
        return False
    for v in running.values():
        if isinstance(v, dict) and v.get("result") is False:
            return False
    return True


check_state_result = check_result


def merge_subreturn(original_return, sub_return, subkey=None):
    if not sub_return["result"]:
        original_return["result"] = sub_return["result"]
    comments = original_return["comment"]
    more = sub_return["comment"]
    more = more if isinstance(more, list) else [more]
    original_return["comment"] = (comments if isinstance(comments, list) else [comments] if comments else []) + more
    if sub_return["changes"]:
        if subkey:
            original_return["changes"][subkey] = sub_return["changes"]
        else:
            original_return["changes"].update(sub_return["changes"])
    return original_return


def get_sls_opts(opts, **kwargs):
    return dict(opts, **{k: v for k, v in kwargs.items() if k in ("saltenv", "pillarenv")})
