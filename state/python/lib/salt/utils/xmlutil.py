def to_dict(xmltree, attr=False):
    """A mapping of an XML tree."""
    if not list(xmltree):
        return {xmltree.tag.rpartition("}")[2]: xmltree.text}
    found = {}
    for item in xmltree:
        name = item.tag.rpartition("}")[2]
        v = to_dict(item, attr) if list(item) else item.text
        if name in found:
            found[name] = (found[name] if isinstance(found[name], list) else [found[name]]) + [v]
        else:
            found[name] = v
    if attr:
        found.update(xmltree.attrib)
    return found
