package process

import (
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/redact"
)

// GitLogins removes the credentials from http and https URLs for git, or for a program that runs git. It returns the
// URLs without them, and environment variables for that program from which git gets the credentials of each URL. Every
// user of a host can read the arguments of all processes, but only the environment of the user's own processes.
//
// A URL may start with git+, end with @ and a commit, and have text before it ("name @ URL"), as in package managers.
// Anything else, including ssh URLs, is returned unchanged. The variables need Git 2.31 or newer.
func GitLogins(urls ...string) (plain, env []string) {
	var entries []login
	for _, raw := range urls {
		bare, l, ok := withoutLogin(raw)
		plain = append(plain, bare)
		if ok {
			entries = append(entries, l)
		}
	}
	if len(entries) == 0 {
		return plain, nil
	}
	// The credentials for the exact URL come first, then those for its server, for package managers that write the URL
	// differently.
	var keys, values []string
	for _, whole := range []bool{true, false} {
		for i, l := range entries {
			at := l.server
			if whole {
				at += l.path
			}
			keys = append(keys, "credential."+at+".helper")
			values = append(values, fmt.Sprintf(`!f() { echo "username=$CORPUS_GIT_USER_%[1]d"; `+
				`echo "password=$CORPUS_GIT_PASSWORD_%[1]d"; }; f`, i))
		}
	}
	env = []string{fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(keys))}
	for i := range keys {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, keys[i]),
			fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, values[i]))
	}
	for i, l := range entries {
		env = append(env, fmt.Sprintf("CORPUS_GIT_USER_%d=%s", i, l.user),
			fmt.Sprintf("CORPUS_GIT_PASSWORD_%d=%s", i, l.password))
	}
	return plain, env
}

// login is the credentials for a URL.
type login struct{ server, path, user, password string }

// withoutLogin removes the credentials from a URL and leaves all other characters unchanged.
func withoutLogin(raw string) (bare string, l login, ok bool) {
	before, rest, found := strings.Cut(raw, "://")
	if !found {
		return raw, login{}, false
	}
	scheme := before[strings.LastIndexAny(before, " +@")+1:]
	address := scheme + "://" + rest
	plain, user, password := redact.Login(address)
	if plain == address || scheme != "http" && scheme != "https" {
		return raw, login{}, false
	}
	_, rest, _ = strings.Cut(plain, "://")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	path, _, _ := strings.Cut(rest[end:], "#")
	if before, _, revised := cutLast(path, "@"); revised {
		path = before
	}
	l = login{server: scheme + "://" + rest[:end], path: path, user: user, password: password}
	return before + "://" + rest, l, true
}

// cutLast is strings.Cut at the last separator that is not at the beginning.
func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i <= 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}
