import contextlib
import grp
import os
import pwd


def get_user():
    return pwd.getpwuid(os.geteuid()).pw_name


def get_uid(user=None):
    if user is None:
        return os.geteuid()
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return None


def get_gid(group=None):
    if group is None:
        return os.getegid()
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError:
        return None


def get_specific_user():
    user = get_user()
    sudo = os.environ.get("SUDO_USER")
    return "sudo_{}".format(sudo) if user == "root" and sudo else user


def get_default_group(user):
    return grp.getgrgid(pwd.getpwnam(user).pw_gid).gr_name


def get_group_list(user, include_default=True):
    names = [g.gr_name for g in grp.getgrall() if user in g.gr_mem]
    try:
        default = get_default_group(user)
    except KeyError:
        default = None
    if default:
        names = [n for n in names if n != default] + ([default] if include_default else [])
    return sorted(names)


def get_group_dict(user=None, include_default=True):
    return {name: grp.getgrnam(name).gr_gid for name in get_group_list(user or get_user(), include_default)}


def get_gid_list(user, include_default=True):
    return sorted(set(get_group_dict(user, include_default).values()))


def chugid(runas, group=None):
    info = pwd.getpwnam(runas)
    gid = grp.getgrnam(group).gr_gid if group else info.pw_gid
    os.setgroups(get_gid_list(runas))
    os.setgid(gid)
    os.setuid(info.pw_uid)


def chugid_and_umask(runas, umask, group=None):
    if runas and runas != get_user():
        chugid(runas, group)
    if umask is not None:
        os.umask(umask)


@contextlib.contextmanager
def _same():
    yield
