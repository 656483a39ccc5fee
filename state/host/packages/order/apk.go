package order

import (
	"cmp"
	"strings"
)

// APK compares two versions of apk, digits{.digits}{letter}{_suffix{digits}}{-rdigits}.
//
// The parts are compared in turn. If one version ends, the other is newer, unless its next part is a suffix of a
// pre-release, such as _rc1. Numbers after the first are compared as decimal fractions if one begins with a zero.
func APK(a, b string) int {
	if a == b {
		return 0
	}
	x, y := apkReader{rest: a}, apkReader{rest: b}
	kind := apkDigit
	for {
		p, q := x.next(kind), y.next(kind)
		if c := compareAPKParts(p, q); c != 0 {
			return c
		}
		if p.kind == apkEnd || p.kind == apkInvalid {
			return 0
		}
		x.after, y.after = p.kind, q.kind
		kind = apkNumber
	}
}

// The kinds of parts, in the order in which they may follow each other.
type apkKind int

const (
	apkDigit    apkKind = iota // the first number
	apkNumber                  // a number behind a point
	apkLetter                  // one letter
	apkSuffix                  // _rc and the like
	apkCounter                 // the number of a suffix
	apkHash                    // ~ and a hash of the source
	apkRevision                // -r and a number
	apkEnd
	apkInvalid
)

type apkPart struct {
	kind   apkKind
	text   string
	before bool // the suffix of a pre-release
	order  int  // the position of a suffix in apkSuffixes
}

// apkReader splits a version into parts.
type apkReader struct {
	rest  string
	after apkKind
}

// apkSuffixes returns the suffixes from old to new. The empty string is the position of a version without a suffix.
func apkSuffixes() []string {
	return []string{"alpha", "beta", "pre", "rc", "", "cvs", "svn", "git", "hg", "p"}
}

func (r *apkReader) next(first apkKind) apkPart {
	if first == apkDigit {
		return r.number(apkDigit, 0)
	}
	switch s := r.rest; {
	case s == "":
		return apkPart{kind: apkEnd}
	case s[0] == '.' && r.after <= apkNumber && len(s) > 1 && isDigit(s[1]):
		return r.number(apkNumber, 1)
	case isLower(s[0]) && r.after <= apkNumber:
		r.rest = s[1:]
		return apkPart{kind: apkLetter, text: s[:1]}
	case isDigit(s[0]) && r.after == apkSuffix:
		return r.number(apkCounter, 0)
	case s[0] == '_' && r.after <= apkCounter:
		return r.suffix()
	case s[0] == '~' && r.after <= apkCounter:
		text, rest := runOf(s[1:], func(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'f' })
		r.rest = rest
		return apkPart{kind: apkHash, text: text}
	case strings.HasPrefix(s, "-r") && len(s) > 2 && isDigit(s[2]) && r.after < apkRevision:
		return r.number(apkRevision, 2)
	}
	return apkPart{kind: apkInvalid}
}

func (r *apkReader) number(kind apkKind, skip int) apkPart {
	text, rest := runOf(r.rest[min(skip, len(r.rest)):], isDigit)
	r.rest = rest
	if text == "" {
		return apkPart{kind: apkInvalid}
	}
	return apkPart{kind: kind, text: text}
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }

func (r *apkReader) suffix() apkPart {
	text, rest := runOf(r.rest[1:], isLower)
	for i, known := range apkSuffixes() {
		if text == known && text != "" {
			r.rest = rest
			return apkPart{kind: apkSuffix, order: i, before: i < 4}
		}
	}
	return apkPart{kind: apkInvalid}
}

// compareAPKParts compares two parts. Of two kinds, the later one in the list of kinds is older, except that a
// suffix of a pre-release is older than any other kind.
func compareAPKParts(p, q apkPart) int {
	if p.kind != q.kind {
		switch {
		case p.before:
			return -1
		case q.before:
			return 1
		}
		return cmp.Compare(int(q.kind), int(p.kind))
	}
	switch p.kind {
	case apkNumber:
		if p.text[0] == '0' || q.text[0] == '0' {
			return strings.Compare(p.text, q.text)
		}
		return compareDigits(p.text, q.text)
	case apkDigit, apkCounter, apkRevision:
		return compareDigits(p.text, q.text)
	case apkSuffix:
		return cmp.Compare(p.order, q.order)
	}
	return strings.Compare(p.text, q.text)
}
