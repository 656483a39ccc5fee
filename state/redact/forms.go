package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// forms lists the texts that show a secret: the secret, its lines, and both in the encodings of programs that print
// their input. Escaped texts are also escaped a second time, as in JSON inside of JSON.
func forms(secret string) []string {
	var all []string
	for _, text := range append(strings.Split(secret, "\n"), secret, strings.TrimSpace(secret)) {
		text = strings.TrimSuffix(text, "\r")
		if strings.TrimSpace(text) == "" {
			continue
		}
		all = append(all, text, number(text))
		once := escaped(text)
		all = append(all, once...)
		slices.Sort(once)
		for _, form := range slices.Compact(once) {
			if form != text {
				all = append(all, jsonText(form, false), url.QueryEscape(form), html.EscapeString(form))
			}
		}
		if len(text) >= Shortest {
			all = append(all, encoded(text)...)
		}
	}
	all = slices.DeleteFunc(all, func(form string) bool { return form == "" })
	slices.Sort(all)
	return slices.Compact(all)
}

// number returns a secret of digits as a template's `int` filter writes it, without leading zeros, or "".
func number(text string) string {
	text = strings.TrimSpace(text)
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return ""
	}
	return strings.TrimLeft(text, "0")
}

// escaped lists a text as URLs, JSON, HTML, shells, Go and Python write it.
func escaped(text string) []string {
	quoted := strconv.Quote(text)
	return []string{
		url.QueryEscape(text), url.PathEscape(text), url.UserPassword("", text).String()[1:],
		jsonText(text, true), jsonText(text, false), html.EscapeString(text), pythonHTML(text),
		quoted[1 : len(quoted)-1],
		strings.ReplaceAll(text, "'", `'\''`), strings.ReplaceAll(text, "'", `'"'"'`), strings.ReplaceAll(text, "'", `\'`),
		doubleQuoted(text), strings.ReplaceAll(text, "'", "''"), backslashed(text),
		inside(value.Repr(text)), inside(ascii(value.Repr(text), pythonEscape)), inside(value.Repr([]byte(text))),
		ascii(jsonText(text, false), jsonEscape),
	}
}

// inside returns the part between the quotes of a text or of bytes that Python printed.
func inside(repr string) string {
	from := strings.IndexAny(repr, `'"`)
	return repr[from+1 : len(repr)-1]
}

// ascii writes each character of a text that is not in ASCII as an escape.
func ascii(text string, escape func(rune) string) string {
	var out strings.Builder
	for _, c := range text {
		if c < 0x80 {
			out.WriteRune(c)
		} else {
			out.WriteString(escape(c))
		}
	}
	return out.String()
}

// pythonEscape returns a character as Python's ascii() writes it.
func pythonEscape(c rune) string {
	switch {
	case c < 0x100:
		return fmt.Sprintf(`\x%02x`, c)
	case c < 0x10000:
		return fmt.Sprintf(`\u%04x`, c)
	}
	return fmt.Sprintf(`\U%08x`, c)
}

// jsonEscape returns a character as programs that write JSON in ASCII do, such as Python's json.
func jsonEscape(c rune) string {
	if c < 0x10000 {
		return fmt.Sprintf(`\u%04x`, c)
	}
	high, low := utf16.EncodeRune(c)
	return fmt.Sprintf(`\u%04x\u%04x`, high, low)
}

func jsonText(text string, html bool) string {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(html)
	if e.Encode(text) != nil {
		return ""
	}
	quoted := strings.TrimSuffix(out.String(), "\n")
	return quoted[1 : len(quoted)-1]
}

// pythonHTML returns a text as Python's html.escape writes it.
func pythonHTML(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#x27;").Replace(text)
}

// doubleQuoted returns a text as a shell writes it between double quotes.
func doubleQuoted(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(text)
}

// backslashed returns a text as `printf %q` of a shell writes it.
func backslashed(text string) string {
	var out strings.Builder
	for _, c := range text {
		if c < 0x80 && !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+-./:=@_,", c) {
			out.WriteByte('\\')
		}
		out.WriteRune(c)
	}
	return out.String()
}

// encoded lists the encodings that do not contain the bytes of the text: hexadecimal and base64, the latter also as a
// part of a longer text ("user:secret"), in which it starts at any of the three positions of a group.
func encoded(text string) []string {
	all := []string{hex.EncodeToString([]byte(text)), strings.ToUpper(hex.EncodeToString([]byte(text)))}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		all = append(all, encoding.EncodeToString([]byte(text)))
		for before := range 3 {
			all = append(all, within(encoding, text, before))
		}
	}
	return slices.DeleteFunc(all, func(form string) bool { return len(form) < Shortest })
}

// within returns the part of the base64 of a longer text that depends only on the given text, if before is the number
// of bytes in front of it in its group of three.
func within(encoding *base64.Encoding, text string, before int) string {
	full := encoding.EncodeToString([]byte(strings.Repeat("\x00", before) + text))
	from := []int{0, 2, 3}[before]
	to := (before + len(text)) / 3 * 4
	switch (before + len(text)) % 3 {
	case 1:
		to++
	case 2:
		to += 2
	}
	if to <= from {
		return ""
	}
	return full[from:to]
}
