package jinja

// builtinFilters returns the filters of Jinja2.
func builtinFilters() map[string]Filter {
	attribute := Opt("attribute", nil)
	caseSensitive := Opt("case_sensitive", false)
	f := map[string]Filter{
		// numbers
		"abs":            Define("abs", absFilter, Arg("x")),
		"filesizeformat": Define("filesizeformat", fileSizeFilter, Arg("value"), Opt("binary", false)),
		"float":          Define("float", floatFilter, Arg("value"), Opt("default", 0.0)),
		"int":            Define("int", intFilter, Arg("value"), Opt("default", 0), Opt("base", 10)),
		"round":          Define("round", roundFilter, Arg("value"), Opt("precision", 0), Opt("method", "common")),

		// text
		"capitalize": Define("capitalize", capitalizeFilter, Arg("s")),
		"center":     Define("center", centerFilter, Arg("value"), Opt("width", 80)),
		"format":     formatFilter,
		"indent":     Define("indent", indentFilter, Arg("s"), Opt("width", 4), Opt("first", false), Opt("blank", false)),
		"lower":      Define("lower", lowerFilter, Arg("s")),
		"pprint":     Define("pprint", pprintFilter, Arg("value")),
		"replace":    Define("replace", replaceFilter, Arg("s"), Arg("old"), Arg("new"), Opt("count", nil)),
		"string":     Define("string", stringFilter, Arg("s")),
		"title":      Define("title", titleFilter, Arg("s")),
		"trim":       Define("trim", trimFilter, Arg("value"), Opt("chars", nil)),
		"truncate": Define("truncate", truncateFilter, Arg("s"), Opt("length", 255), Opt("killwords", false),
			Opt("end", "..."),
			Opt("leeway", nil)),
		"upper":     Define("upper", upperFilter, Arg("s")),
		"wordcount": Define("wordcount", wordCountFilter, Arg("s")),
		"wordwrap": Define("wordwrap", wordWrapFilter, Arg("s"), Opt("width", 79), Opt("break_long_words", true),
			Opt("wrapstring", nil),
			Opt("break_on_hyphens", true)),

		// for the web
		"escape":      Define("escape", escapeFilter, Arg("s")),
		"forceescape": Define("forceescape", escapeFilter, Arg("value")),
		"safe":        Define("safe", stringFilter, Arg("value")),
		"striptags":   Define("striptags", stripTagsFilter, Arg("value")),
		"tojson":      Define("tojson", toJSONFilter, Arg("value"), Opt("indent", nil)),
		"urlencode":   Define("urlencode", urlEncodeFilter, Arg("value")),
		"urlize": Define("urlize", urlizeFilter, Arg("value"), Opt("trim_url_limit", nil), Opt("nofollow", false),
			Opt("target", nil),
			Opt("rel", nil), Opt("extra_schemes", nil)),
		"xmlattr": Define("xmlattr", xmlAttrFilter, Arg("d"), Opt("autospace", true)),

		// lists and mappings
		"attr":    Define("attr", attrFilter, Arg("obj"), Arg("name")),
		"batch":   Define("batch", batchFilter, Arg("value"), Arg("linecount"), Opt("fill_with", nil)),
		"default": Define("default", defaultFilter, Arg("value"), Opt("default_value", ""), Opt("boolean", false)),
		"dictsort": Define("dictsort", dictSortFilter, Arg("value"), caseSensitive, Opt("by", "key"),
			Opt("reverse", false)),
		"first":      Define("first", firstFilter, Arg("seq")),
		"groupby":    Define("groupby", groupByFilter, Arg("value"), Arg("attribute"), Opt("default", nil), caseSensitive),
		"items":      Define("items", itemsFilter, Arg("value")),
		"join":       Define("join", joinFilter, Arg("value"), Opt("d", ""), attribute),
		"last":       Define("last", lastFilter, Arg("seq")),
		"length":     Define("length", lengthFilter, Arg("obj")),
		"list":       Define("list", listFilter, Arg("value")),
		"map":        mapFilter,
		"max":        Define("max", maxFilter, Arg("value"), caseSensitive, attribute),
		"min":        Define("min", minFilter, Arg("value"), caseSensitive, attribute),
		"random":     Define("random", randomFilter, Arg("seq")),
		"reject":     selecting("reject", false, false),
		"rejectattr": selecting("rejectattr", true, false),
		"reverse":    Define("reverse", reverseFilter, Arg("value")),
		"select":     selecting("select", false, true),
		"selectattr": selecting("selectattr", true, true),
		"slice":      Define("slice", sliceFilter, Arg("value"), Arg("slices"), Opt("fill_with", nil)),
		"sort":       Define("sort", sortFilter, Arg("value"), Opt("reverse", false), caseSensitive, attribute),
		"sum":        Define("sum", sumFilter, Arg("iterable"), attribute, Opt("start", 0)),
		"unique":     Define("unique", uniqueFilter, Arg("value"), caseSensitive, attribute),
	}
	f["count"], f["d"], f["e"] = f["length"], f["default"], f["escape"]
	return f
}
