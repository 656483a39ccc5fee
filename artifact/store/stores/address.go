package stores

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/s3"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// address is a parsed URL of a store.
type address struct {
	scheme scheme
	url    *url.URL
	query  url.Values

	account s3.Account // for S3; nil for that of a host
}

// parse makes the checks that all kinds of stores have in common. Its errors never contain possible secrets.
func parse(rawURL string) (address, error) {
	shown := Display(rawURL)
	name, _, ok := strings.Cut(rawURL, "://")
	if !ok {
		return address{}, diag.StoreURL.Hint(fmt.Errorf("%q is not the URL of a store", shown), "%s", missingScheme(rawURL))
	}
	kinds := schemes()
	i := slices.IndexFunc(kinds, func(s scheme) bool { return s.name == strings.ToLower(name) })
	if i < 0 {
		return address{}, diag.StoreURL.Hint(fmt.Errorf("store %s: there is no kind of store called %q", shown, name), "%s",
			oneKind(name))
	}
	u, err := url.Parse(rawURL)
	if err != nil { // its text contains the URL, or a part of it that may be a password
		return address{}, diag.StoreURL.Hint(fmt.Errorf("store %s: it is not a URL", shown),
			"a port is a number; write special characters as %%25, %%20 and so on")
	}
	a := address{scheme: kinds[i], url: u}
	if err := a.check(); err != nil {
		return address{}, fmt.Errorf("store %s: %w", shown, err)
	}
	return a, nil
}

func missingScheme(rawURL string) string {
	if strings.HasPrefix(rawURL, "/") {
		return "for a directory write file://" + rawURL
	}
	return "write file:///dir, s3://bucket/prefix, minio://host:port/bucket/prefix or https://host/path"
}

// check refuses URLs that no kind of store allows, and parses the options.
func (a *address) check() error {
	if a.url.User != nil {
		return diag.StoreURL.Hint(errors.New("it contains credentials, which would be remembered and shown with it"),
			"leave them out, and give them in the environment or in the files that the cloud's own tools use")
	}
	if a.url.Fragment != "" {
		return diag.StoreURL.Hint(errors.New("it has a # in it"), "write %%23 if the # is part of a name")
	}
	query, err := url.ParseQuery(a.url.RawQuery)
	if err != nil {
		return errors.New("what follows the ? is not of the form name=value&name=value")
	}
	for name, values := range query {
		if !slices.Contains(a.scheme.options, name) {
			return diag.StoreURL.Hint(fmt.Errorf("there is no option %q", name), "%s", oneOf(name, a.scheme.options))
		}
		if len(values) != 1 || values[0] == "" {
			return fmt.Errorf("the option %s needs one value", name)
		}
	}
	a.query = query
	return nil
}

func oneOf(word string, known []string) string {
	if len(known) == 0 {
		return "such a URL takes no options"
	}
	if did := diag.DidYouMean(word, known); did != "" {
		return did
	}
	return "there are: " + strings.Join(known, ", ")
}

// oneKind returns the hint for an unknown kind of store. Names of kinds are short, so only similar ones are suggested:
// ftp is not a misspelling of http.
func oneKind(name string) string {
	if meant := diag.Misspelling(strings.ToLower(name), known()); meant != "" {
		return fmt.Sprintf("did you mean %q?", meant)
	}
	return "there are: " + strings.Join(known(), ", ")
}

// prefix converts a path into a prefix of keys.
func prefix(path string) (string, error) {
	path = strings.Trim(path, "/")
	if path == "" {
		return "", nil
	}
	return path, store.CheckKey(path)
}

// flag parses an option that is 0 or 1.
func (a *address) flag(name string) (on, given bool, err error) {
	switch v := a.query.Get(name); v {
	case "":
		return false, false, nil
	case "1", "true", "yes":
		return true, true, nil
	case "0", "false", "no":
		return false, true, nil
	default:
		return false, false, fmt.Errorf("the option %s is 0 or 1, not %q", name, v)
	}
}

// Display returns a store's URL for messages and reports, without possible secrets, even if Open would refuse the URL.
func Display(rawURL string) string {
	scheme, _, ok := strings.Cut(rawURL, "://")
	u, err := url.Parse(rawURL)
	switch {
	case err != nil && ok:
		return scheme + "://..."
	case err != nil || !ok && strings.Contains(rawURL, "@"):
		return "..."
	}
	u.RawQuery, u.Fragment = displayQuery(u.RawQuery), ""
	return redact.URLs(u.String())
}

// displayQuery hides the values of unknown options, and of those that contain a login.
func displayQuery(query string) string {
	if query == "" {
		return ""
	}
	options := strings.Split(query, "&")
	for i, option := range options {
		name, _, _ := strings.Cut(option, "=")
		public := slices.ContainsFunc(schemes(), func(s scheme) bool { return slices.Contains(s.options, name) })
		if !public || strings.Contains(option, "@") || strings.Contains(option, "%40") {
			options[i] = name + "=" + redact.Mark
		}
	}
	return strings.Join(options, "&")
}
