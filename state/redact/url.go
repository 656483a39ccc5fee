package redact

import (
	"regexp"
	"strings"
	"sync"
)

// address finds what may be a URL: a scheme, and all up to a character that no URL has.
var address = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>` + "`" + `]+`)
})

// parameter finds parameters of a query whose value lets its reader in.
var parameter = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`(?i)([?&;](?:[a-z0-9_.-]*[_.-])?(?:sig|signature|token|secret|password|passwd|pwd|key|apikey|auth|authorization|credential|code|jwt)=)[^&;#\s"'<>]+`)
})

// URLs returns a text whose URLs show neither passwords nor tokens: [Mark] stands for the user information and for
// the values of parameters of a query that are named like credentials. A user name alone is kept where the
// scheme is not HTTP's (ssh://git@host).
func URLs(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	return address().ReplaceAllStringFunc(text, withoutCredentials)
}

func withoutCredentials(url string) string {
	scheme, rest, _ := strings.Cut(url, "://")
	if at := credentials(scheme, rest); at > 0 {
		rest = Mark + rest[at:]
	}
	return scheme + "://" + parameter().ReplaceAllString(rest, "${1}"+Mark)
}

// credentials returns where the user information of a URL's rest ends, at its "@", or 0. Passwords are often
// written with a slash or another character that should have been escaped, so the last "@" before the query
// counts if what stands before the first slash is no host and port.
func credentials(scheme, rest string) int {
	authority := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
	}
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		if isHTTP(scheme) || strings.Contains(authority[:at], ":") {
			return at
		}
		return 0
	}
	if _, port, ok := strings.Cut(authority, ":"); !ok || isPort(port) || strings.HasPrefix(authority, "[") {
		return 0
	}
	return max(strings.LastIndexByte(rest, '@'), 0)
}

func isHTTP(scheme string) bool {
	scheme = strings.ToLower(scheme)
	return strings.HasSuffix(scheme, "http") || strings.HasSuffix(scheme, "https")
}

// isPort reports whether a text can be the port behind a host's name; an empty one can.
func isPort(text string) bool {
	return len(text) <= 5 && strings.Trim(text, "0123456789") == "" && (len(text) < 5 || text <= "65535")
}
