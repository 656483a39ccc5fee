package jinja

// builtinFilters returns the filters of Jinja2.
func builtinFilters() map[string]Filter {
	f := map[string]Filter{
		"format":     formatFilter,
		"map":        mapFilter,
		"reject":     selecting("reject", false, false),
		"rejectattr": selecting("rejectattr", true, false),
		"select":     selecting("select", false, true),
		"selectattr": selecting("selectattr", true, true),
	}
	for _, d := range definitions {
		f[d.name] = Define(d.name, d.function, d.parameters...)
	}
	f["count"], f["d"], f["e"] = f["length"], f["default"], f["escape"]
	return f
}

// definition is a filter whose arguments have parameters.
type definition struct {
	name       string
	function   func(c *Call) (any, error)
	parameters []Param
}

// definitions are data of the program: as calls of Define they would be 15 KiB of code.
var definitions = []definition{
	// numbers
	{"abs", absFilter, []Param{Arg("x")}},
	{"filesizeformat", fileSizeFilter, []Param{Arg("value"), Opt("binary", false)}},
	{"float", floatFilter, []Param{Arg("value"), Opt("default", 0.0)}},
	{"int", intFilter, []Param{Arg("value"), Opt("default", 0), Opt("base", 10)}},
	{"round", roundFilter, []Param{Arg("value"), Opt("precision", 0), Opt("method", "common")}},

	// text
	{"capitalize", capitalizeFilter, []Param{Arg("s")}},
	{"center", centerFilter, []Param{Arg("value"), Opt("width", 80)}},
	{"indent", indentFilter, []Param{Arg("s"), Opt("width", 4), Opt("first", false), Opt("blank", false)}},
	{"lower", lowerFilter, []Param{Arg("s")}},
	{"pprint", pprintFilter, []Param{Arg("value")}},
	{"replace", replaceFilter, []Param{Arg("s"), Arg("old"), Arg("new"), Opt("count", nil)}},
	{"string", stringFilter, []Param{Arg("s")}},
	{"title", titleFilter, []Param{Arg("s")}},
	{"trim", trimFilter, []Param{Arg("value"), Opt("chars", nil)}},
	{"truncate", truncateFilter, []Param{Arg("s"), Opt("length", 255), Opt("killwords", false),
		Opt("end", "..."), Opt("leeway", nil)}},
	{"upper", upperFilter, []Param{Arg("s")}},
	{"wordcount", wordCountFilter, []Param{Arg("s")}},
	{"wordwrap", wordWrapFilter, []Param{Arg("s"), Opt("width", 79), Opt("break_long_words", true),
		Opt("wrapstring", nil), Opt("break_on_hyphens", true)}},

	// for the web
	{"escape", escapeFilter, []Param{Arg("s")}},
	{"forceescape", escapeFilter, []Param{Arg("value")}},
	{"safe", stringFilter, []Param{Arg("value")}},
	{"striptags", stripTagsFilter, []Param{Arg("value")}},
	{"tojson", toJSONFilter, []Param{Arg("value"), Opt("indent", nil)}},
	{"urlencode", urlEncodeFilter, []Param{Arg("value")}},
	{"urlize", urlizeFilter, []Param{Arg("value"), Opt("trim_url_limit", nil), Opt("nofollow", false),
		Opt("target", nil), Opt("rel", nil), Opt("extra_schemes", nil)}},
	{"xmlattr", xmlAttrFilter, []Param{Arg("d"), Opt("autospace", true)}},

	// lists and mappings
	{"attr", attrFilter, []Param{Arg("obj"), Arg("name")}},
	{"batch", batchFilter, []Param{Arg("value"), Arg("linecount"), Opt("fill_with", nil)}},
	{"default", defaultFilter, []Param{Arg("value"), Opt("default_value", ""), Opt("boolean", false)}},
	{"dictsort", dictSortFilter, []Param{Arg("value"), Opt("case_sensitive", false), Opt("by", "key"),
		Opt("reverse", false)}},
	{"first", firstFilter, []Param{Arg("seq")}},
	{"groupby", groupByFilter, []Param{Arg("value"), Arg("attribute"), Opt("default", nil),
		Opt("case_sensitive", false)}},
	{"items", itemsFilter, []Param{Arg("value")}},
	{"join", joinFilter, []Param{Arg("value"), Opt("d", ""), Opt("attribute", nil)}},
	{"last", lastFilter, []Param{Arg("seq")}},
	{"length", lengthFilter, []Param{Arg("obj")}},
	{"list", listFilter, []Param{Arg("value")}},
	{"max", maxFilter, []Param{Arg("value"), Opt("case_sensitive", false), Opt("attribute", nil)}},
	{"min", minFilter, []Param{Arg("value"), Opt("case_sensitive", false), Opt("attribute", nil)}},
	{"random", randomFilter, []Param{Arg("seq")}},
	{"reverse", reverseFilter, []Param{Arg("value")}},
	{"slice", sliceFilter, []Param{Arg("value"), Arg("slices"), Opt("fill_with", nil)}},
	{"sort", sortFilter, []Param{Arg("value"), Opt("reverse", false), Opt("case_sensitive", false),
		Opt("attribute", nil)}},
	{"sum", sumFilter, []Param{Arg("iterable"), Opt("attribute", nil), Opt("start", 0)}},
	{"unique", uniqueFilter, []Param{Arg("value"), Opt("case_sensitive", false), Opt("attribute", nil)}},
}
