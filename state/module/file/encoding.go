package file

import (
	"fmt"
	"strings"
	"unicode/utf16"

	"golang.org/x/text/encoding/charmap"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// encoded holds the arguments that set the encoding of a file.
type encoded struct {
	Encoding string `sls:"encoding"`
	Errors   string `sls:"encoding_errors"`
}

// bytes converts UTF-8 text to the encoding; UTF-8 is the default.
func (e encoded) bytes(text []byte) ([]byte, error) {
	name := strings.NewReplacer("_", "-", " ", "-").Replace(strings.ToLower(e.Encoding))
	switch name {
	case "", "utf-8", "utf8":
		return text, nil
	case "utf-16":
		return wide([]byte{0xff, 0xfe}, string(text), false), nil
	case "utf-16-le", "utf-16le":
		return wide(nil, string(text), false), nil
	case "utf-16-be", "utf-16be":
		return wide(nil, string(text), true), nil
	}
	narrow, ok := narrowEncoding(name)
	if !ok {
		return nil, diag.Argument.Hint(fmt.Errorf("the encoding %s is not known", e.Encoding),
			"use utf-8, utf-16, ascii, latin-1, iso8859-N or cpNNNN")
	}
	var out []byte
	for _, r := range string(text) {
		b, ok := narrow(r)
		if ok {
			out = append(out, b)
			continue
		}
		instead, err := e.instead(r)
		if err != nil {
			return nil, err
		}
		out = append(out, instead...)
	}
	return out, nil
}

// instead returns the replacement for a character that the encoding lacks.
func (e encoded) instead(r rune) (string, error) {
	switch e.Errors {
	case "ignore":
		return "", nil
	case "replace":
		return "?", nil
	case "xmlcharrefreplace":
		return fmt.Sprintf("&#%d;", r), nil
	case "", "strict":
		return "", diag.Edit.Hint(fmt.Errorf("the encoding %s has no %q", e.Encoding, r),
			"set encoding_errors to replace, ignore or xmlcharrefreplace, or choose utf-8")
	}
	return "", fmt.Errorf("encoding_errors cannot be %s", e.Errors)
}

func wide(out []byte, text string, big bool) []byte {
	for _, unit := range utf16.Encode([]rune(text)) {
		low, high := byte(unit), byte(unit>>8)
		if big {
			low, high = high, low
		}
		out = append(out, low, high)
	}
	return out
}

// narrowEncoding returns the encoder of a single-byte encoding.
func narrowEncoding(name string) (func(r rune) (byte, bool), bool) {
	switch name {
	case "ascii", "us-ascii":
		return func(r rune) (byte, bool) { return byte(r), r < 0x80 }, true
	case "latin-1", "latin1", "iso-8859-1", "iso8859-1":
		return func(r rune) (byte, bool) { return byte(r), r < 0x100 }, true
	}
	for _, e := range charmap.All {
		if m, ok := e.(*charmap.Charmap); ok && sameEncoding(m.String(), name) {
			return m.EncodeRune, true
		}
	}
	return nil, false
}

// sameEncoding reports whether the standard name of an encoding and another name denote the same encoding, such as
// ISO 8859-15 and iso8859-15, or Windows 1252 and cp1252.
func sameEncoding(standard, name string) bool {
	plain := func(s string) string { return strings.NewReplacer("-", "", " ", "").Replace(strings.ToLower(s)) }
	s, n := plain(standard), plain(name)
	return s == n || s == strings.Replace(n, "cp", "windows", 1) || s == strings.Replace(n, "cp", "ibmcodepage", 1)
}
