"""The functions of salt.utils. Those that Salt has moved to modules below are found at their old place, too."""
from salt.defaults import DEFAULT_TARGET_DELIM  # noqa: F401

_MOVED = {
    "args": "clean_kwargs get_function_argspec invalid_kwargs arg_lookup argspec_report shlex_split split_input test_mode "
            "format_call yamlify_arg",
    "data": "traverse_dict traverse_dict_and_list compare_dicts compare_lists decode decode_dict decode_list is_list is_iter "
            "is_dictlist repack_dictlist is_true exactly_n exactly_one mysql_to_dict subdict_match filter_by simple_types_filter "
            "stringify json_query",
    "files": "fopen flopen mkstemp fpopen safe_rm is_empty is_fcntl_available rm_rf set_umask copyfile recursive_copy "
             "safe_filepath remove normalize_mode list_files is_binary is_text backup_minion",
    "functools": "namespaced_function alias_function",
    "hashutils": "get_hash random_hash",
    "path": "which which_bin sanitize_win_path os_walk islink readlink is_escaped",
    "platform": "is_windows is_linux is_darwin is_sunos is_smartos is_smartos_globalzone is_smartos_zone is_freebsd is_netbsd "
                "is_openbsd is_aix is_proxy is_fedora is_arch",
    "stringutils": "to_bytes to_str to_unicode to_num to_none is_quoted dequote expr_match check_include_exclude "
                   "print_cli is_hex camel_to_snake_case contains_whitespace human_to_bytes build_whitespace_split_regex "
                   "get_context is_bin_str is_text_str",
    "user": "get_user get_uid get_specific_user chugid get_group_list get_group_dict get_default_group get_gid_list "
            "get_gid chugid_and_umask",
    "versions": "warn_until warn_until_date kwargs_warn_until version_cmp compare_versions",
    "network": "ip_bracket host_to_ips mac_str_to_bytes",
    "dictupdate": "",
    "decorators": "memoize",
    "state": "check_result check_state_result get_sls_opts search_onfail_requisites",
    "templates": "",
    "process": "daemonize",
    "dateutils": "date_cast date_format total_seconds",
    "color": "get_colors get_color_theme",
    "url": "",
    "event": "tagify",
    "jid": "is_jid jid_to_time gen_jid",
}
_OLD = {"istextfile": ("files", "is_text"), "str_to_num": ("stringutils", "to_num"), "rand_str": ("hashutils", "random_hash"),
        "rand_string": ("hashutils", "random_hash"), "is_bin_file": ("files", "is_binary"),
        "check_state_result": ("state", "check_result")}


def __getattr__(name):
    import importlib
    if name.startswith("__"):
        raise AttributeError(name)
    module, function = _OLD.get(name, (None, name))
    for candidate, names in _MOVED.items():
        if module is None and name in names.split():
            module = candidate
    if module is not None:
        return getattr(importlib.import_module("salt.utils." + module), function)
    try:
        return importlib.import_module("salt.utils." + name)
    except ImportError as e:
        raise AttributeError(str(e))
