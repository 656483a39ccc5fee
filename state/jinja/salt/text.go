package salt

import (
	"path"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func textFilters() map[string]jinja.Filter {
	text := jinja.Arg("text")
	return map[string]jinja.Filter{
		"check_whitelist_blacklist": jinja.Define("check_whitelist_blacklist", checkLists, jinja.Arg("value"),
			jinja.Opt("whitelist", nil), jinja.Opt("blacklist", nil)),
		"contains_whitespace": jinja.Define("contains_whitespace", containsSpace, text),
		"human_to_bytes": jinja.Define("human_to_bytes", humanToBytes, jinja.Arg("size"), jinja.Opt("default_unit", "B"),
			jinja.Opt("handle_metric", false)),
		"is_hex":        jinja.Define("is_hex", isHex, jinja.Arg("value")),
		"load_text":     jinja.Define("load_text", loadText, jinja.Arg("value")),
		"path_join":     jinja.Define("path_join", pathJoin, jinja.Rest("parts")),
		"quote":         jinja.Define("quote", quote, jinja.Arg("txt")),
		"skip":          jinja.Define("skip", skip, jinja.Arg("data")),
		"str_to_num":    jinja.Define("str_to_num", toNumber, text),
		"to_bool":       jinja.Define("to_bool", toBool, jinja.Arg("val")),
		"to_camelcase":  jinja.Define("to_camelcase", toCamelCase, jinja.Arg("snake_input"), jinja.Opt("uppercamel", false)),
		"to_num":        jinja.Define("to_num", toNumber, text),
		"to_snake_case": jinja.Define("to_snake_case", toSnakeCase, jinja.Arg("camel_input")),
		"strftime":      jinja.Define("strftime", formatDate, jinja.Opt("date", nil), jinja.Opt("format", "%Y-%m-%d")),
		"date_format":   jinja.Define("date_format", formatDate, jinja.Opt("date", nil), jinja.Opt("format", "%Y-%m-%d")),
	}
}

func skip(*jinja.Call) (any, error) { return "", nil }

func loadText(c *jinja.Call) (any, error) { return c.Plain(0) }

func toBool(c *jinja.Call) (any, error) {
	switch v := c.Args[0].(type) {
	case nil:
		return false, nil
	case bool:
		return v, nil
	case string:
		lower := strings.ToLower(v)
		return lower == "yes" || lower == "1" || lower == "true", nil
	case int:
		return v > 0, nil
	case *value.List, *value.Map:
		return value.Truth(v), nil
	}
	return false, nil
}

// toNumber converts text to an int or a float if possible, and returns other values unchanged.
func toNumber(c *jinja.Call) (any, error) {
	if _, err := c.Str(0); err != nil {
		return nil, err
	}
	return number(c.Args[0])
}

func number(v any) (any, error) {
	n, err := value.ToInt(v)
	if err == nil || value.ClassOf(err) != "ValueError" {
		return n, err
	}
	f, err := value.ToFloat(v)
	if value.ClassOf(err) == "ValueError" {
		return v, nil
	}
	return f, err
}

func containsSpace(c *jinja.Call) (any, error) {
	s, err := c.Text(0)
	return strings.IndexFunc(s, value.IsSpace) >= 0, err
}

func isHex(c *jinja.Call) (any, error) {
	s, ok := c.Args[0].(string)
	if !ok {
		return false, nil
	}
	_, err := value.ParseInt(s, 16)
	return err == nil, nil
}

// quote quotes a text as one word for a shell.
func quote(c *jinja.Call) (any, error) {
	s, err := c.Text(0)
	if err != nil || s != "" && !unsafeForShell().MatchString(s) {
		return s, err
	}
	return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'", nil
}

var unsafeForShell = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^\w@%+=:,./-]`) })

func pathJoin(c *jinja.Call) (any, error) {
	parts := c.Args[0].(value.Tuple)
	if len(parts) == 0 {
		return "", nil
	}
	joined := ""
	for i, p := range parts {
		s, ok := p.(string)
		if !ok {
			return nil, typeError("expected str or bytearray not <class '" + value.TypeName(p) + "'>")
		}
		if i > 0 {
			s = strings.TrimLeft(path.Clean(s), "/")
		}
		joined = path.Join(joined, s)
	}
	return joined, nil
}

func toSnakeCase(c *jinja.Call) (any, error) {
	s, err := c.Text(0)
	if err != nil {
		return nil, err
	}
	runes := []rune(s)
	if len(runes) == 0 {
		return nil, &jinja.Failure{Class: "IndexError", Message: "string index out of range"}
	}
	var b strings.Builder
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) || i < len(runes)-1 && unicode.IsLower(runes[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String(), nil
}

func toCamelCase(c *jinja.Call) (any, error) {
	s, err := c.Text(0)
	if err != nil {
		return nil, err
	}
	upper, err := c.Bool(1)
	words := strings.Split(s, "_")
	for i, w := range words {
		if i > 0 || upper {
			words[i] = value.Capitalize(w)
		}
	}
	return strings.Join(words, ""), err
}

var (
	humanSize  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([0-9.]*)\s*(.*)$`) })
	metricUnit = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[kmgtpezy]b$`) })
	binaryUnit = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:b|[kmgtpezy](?:ib)?)$`) })
)

// humanToBytes parses sizes such as 64KiB. It returns 0 for invalid ones.
func humanToBytes(c *jinja.Call) (any, error) {
	s, err := c.Str(0)
	if err != nil {
		return nil, err
	}
	metric, err := c.Bool(2)
	if err != nil {
		return nil, err
	}
	m := humanSize().FindStringSubmatch(value.Strip(s))
	if m == nil {
		return 0, nil
	}
	unit := strings.ToLower(m[2])
	if unit == "" {
		if unit, err = c.Text(1); err != nil {
			return nil, err
		}
		unit = strings.ToLower(unit)
	}
	amount, err := number(m[1])
	if _, text := amount.(string); err != nil || text {
		return 0, err
	}
	decimal := false
	switch {
	case metricUnit().MatchString(unit):
		decimal = metric
	case !binaryUnit().MatchString(unit):
		return 0, nil
	}
	power := strings.IndexByte("bkmgtpezy", unit[0])
	factor := any(1)
	for range power {
		by := 1024
		if decimal {
			by = 1000
		}
		if factor, err = value.Mul(factor, by); err != nil {
			return nil, err
		}
	}
	if amount, err = value.Mul(amount, factor); err != nil {
		return nil, err
	}
	return value.ToInt(amount)
}

// checkLists reports whether a text matches the whitelist, if there is one, and not the blacklist. The items of both
// are globs or regular expressions.
func checkLists(c *jinja.Call) (any, error) {
	s, err := c.Text(0)
	if err != nil {
		return nil, err
	}
	white, inWhite, err := matchesAny(c, s, 1)
	if err != nil {
		return nil, err
	}
	black, inBlack, err := matchesAny(c, s, 2)
	return (!black || !inBlack) && (!white || inWhite), err
}

// matchesAny reports whether list argument i is given, and whether one of its items matches.
func matchesAny(c *jinja.Call, s string, i int) (given, matches bool, err error) {
	given, err = c.Bool(i)
	if !given || err != nil {
		return false, false, err
	}
	patterns := []any{c.Args[i]}
	if _, single := c.Args[i].(string); !single {
		if patterns, err = c.Items(i); err != nil {
			return false, false, err
		}
	}
	for _, p := range patterns {
		pattern, _ := p.(string)
		if value.Glob(pattern, s) {
			return true, true, nil
		}
		if r, err := c.Regexp(pattern, value.RegexpFlags{}); err == nil {
			if m, err := r.MatchAll(s); m != nil || err != nil {
				return true, m != nil, err
			}
		}
	}
	return true, false, nil
}
