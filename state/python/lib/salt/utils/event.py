def tagify(suffix="", prefix="", base="salt"):
    parts = [base, prefix]
    parts.extend(suffix if isinstance(suffix, (list, tuple)) else [suffix])
    return "/".join(str(p) for p in parts if p)
