import datetime


def gen_jid(opts=None):
    return datetime.datetime.utcnow().strftime("%Y%m%d%H%M%S%f")


def is_jid(jid):
    return isinstance(jid, str) and len(jid) in (20, 27) and jid.split("_")[0].isdigit()


def jid_to_time(jid):
    jid = str(jid)
    return "{}, {} {} {}:{}:{}.{}".format(jid[:4], datetime.date(1900, int(jid[4:6]), 1).strftime("%b"), jid[6:8], jid[8:10],
                                          jid[10:12], jid[12:14], jid[14:]) if is_jid(jid) else ""
