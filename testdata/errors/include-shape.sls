include: web # error: include is a str, and a list of SLS names was expected // write each name as `- name`
