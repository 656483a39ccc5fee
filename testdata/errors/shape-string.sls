just words # error: it renders to a str, and a mapping was expected // an SLS file is `key: value` at its top
