package redact

import (
	"net/url"
	"regexp"
	"strings"
	"sync"
)

// address matches a possible URL: a scheme, and all characters up to one that no URL has. A secret that was replaced is
// part of it.
var address = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://(?:` + Mark + `|[^\s"'<>` + "`" + `])+`)
})

// parameter matches parameters of a query whose values are credentials.
var parameter = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`(?i)([?&;](?:[a-z0-9_.-]*[_.-])?(?:sig|signature|token|secret|password|passwd|pwd|key|apikey|auth|authorization|` +
			`credential|code|jwt)=)(?:` + Mark + `|[^&;#\s"'<>])+`)
})

// brief matches the short form of an address for ssh(1) and git(1), user@host:path, with a password after the user. It
// also matches names with a digest (image:tag@sha256:...), which have the same shape.
var brief = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(^|[\s"'` + "`" + `=(,<\[])([A-Za-z0-9._+-]+:[^\s:/"'<>` + "`" + `][^\s"'<>` + "`" +
		`]*)@` +
		`([A-Za-z0-9._-]+|\[[0-9A-Fa-f:]+\]):([^\s:])`)
})

// URLs returns a text whose URLs contain neither passwords nor tokens: [Mark] replaces the user information and the
// values of query parameters with names of credentials. A user name without a password is kept if the scheme is neither
// HTTP's nor that of a bucket (ssh://git@host). The short form user:password@host:path counts as a URL.
//
// It is the only function that does this: every message, report and answer that may hold a URL goes through it.
func URLs(text string) string {
	if strings.Contains(text, "://") {
		text = address().ReplaceAllStringFunc(text, withoutCredentials)
	}
	if strings.Contains(text, "@") {
		text = brief().ReplaceAllStringFunc(text, withoutPassword)
	}
	return text
}

func withoutCredentials(address string) string {
	scheme, rest, _ := strings.Cut(address, "://")
	if at := credentials(scheme, rest); at > 0 {
		rest = Mark + rest[at:]
	}
	return scheme + "://" + parameter().ReplaceAllString(rest, "${1}"+Mark)
}

// withoutPassword returns an address of the short form without its user and password.
func withoutPassword(found string) string {
	part := brief().FindStringSubmatch(found)
	if strings.HasPrefix(part[3], "sha") && strings.Trim(part[3][len("sha"):], "0123456789") == "" {
		return found
	}
	return part[1] + Mark + "@" + part[3] + ":" + part[4]
}

// HoldsLogin reports whether a text contains a URL with credentials that [URLs] removes.
func HoldsLogin(text string) bool { return URLs(text) != text }

// Login removes the user information from a URL and returns it, for a program that must not get it on its command line,
// which every user of the host can read. A name without a password stays in a URL that is not HTTP's. Characters that
// should have been escaped are taken literally.
func Login(address string) (without, user, password string) {
	scheme, rest, ok := strings.Cut(address, "://")
	at := hostAt(rest, credentials(scheme, rest))
	if !ok || at <= 0 {
		return address, "", ""
	}
	user, password, _ = strings.Cut(rest[:at], ":")
	if !isHTTP(scheme) {
		return scheme + "://" + user + rest[at:], unescaped(user), unescaped(password)
	}
	return scheme + "://" + rest[at+1:], unescaped(user), unescaped(password)
}

// hostAt returns the offset of the "@" before the host in the rest of a URL. last is the last possible "@": a package
// manager's URL may have another one, before a revision (https://u:a/b@host/repository@v1).
func hostAt(rest string, last int) int {
	if last <= 0 || strings.Contains(rest[last:], "/") || !strings.Contains(rest[:last], "/") {
		return last
	}
	if end := strings.LastIndexByte(rest[:last], '/'); strings.Contains(rest[:end], "@") {
		return strings.LastIndexByte(rest[:end], '@')
	}
	return last
}

func unescaped(text string) string {
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}

// credentials returns the offset of the "@" that ends the user information of a URL's rest, or 0 if there is none.
// Passwords are often written with a slash or another character that should have been escaped. If the text before the
// first of these has no "@" but a colon without a port after it, the result is therefore the last "@" of the rest.
func credentials(scheme, rest string) int {
	authority := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
	}
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		if isHTTP(scheme) || isBucket(scheme) || strings.Contains(authority[:at], ":") {
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

func isBucket(scheme string) bool {
	scheme = strings.ToLower(scheme)
	return scheme == "s3" || scheme == "minio"
}

// isPort reports whether a text can be the port after a host's name; it may be empty.
func isPort(text string) bool {
	return len(text) <= 5 && strings.Trim(text, "0123456789") == "" && (len(text) < 5 || text <= "65535")
}
