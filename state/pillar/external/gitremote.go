package external

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// environmentBranch stands for the branch of the minion's environment.
const environmentBranch = "__env__"

// gitParameters returns the parameters of a repository. Those of the second list exist for Salt's configurations: a
// branch is fetched by its name, and one repository may be listed twice.
func gitParameters() (used, unused []string) {
	return []string{"env", "root", "base", "mountpoint", "all_saltenvs", "fallback", "ssl_verify", "user", "password",
		"insecure_auth", "privkey", "pubkey", "passphrase"}, []string{"name", "refspecs"}
}

func checkParameters(given *value.Map) error {
	used, unused := gitParameters()
	for key := range given.All() {
		if name := value.Str(key); !slices.Contains(append(used, unused...), name) {
			return diag.External.Hint(fmt.Errorf("a repository has no parameter %s", name), "%s", diag.DidYouMean(name, used))
		}
	}
	return nil
}

// remote reads the parameters of one repository. The options git_pillar_* of the minion are their defaults.
func (w World) remote(branch, rawURL string, given *value.Map) (remote, error) {
	if err := checkParameters(given); err != nil {
		return remote{}, err
	}
	text := func(name string) string {
		v := given.Value(name)
		if v == nil {
			v = w.Options.Value("git_pillar_" + name)
		}
		if !value.Truth(v) {
			return ""
		}
		return value.Str(v)
	}
	r := remote{root: inside(text("root")), mount: inside(text("mountpoint")), fallback: text("fallback"),
		user:     text("user"),
		password: text("password"), key: text("privkey")}
	r.insecure = w.unverified(given)
	r.branch, r.env = w.branchAndEnv(branch, text)
	if text("passphrase") != "" {
		return remote{}, diag.External.Hint(errors.New("a key with a passphrase is not supported"),
			"use a key without one that only root can read, which may read this repository and nothing else")
	}
	var user, password string
	r.url, user, password = redact.Login(rawURL)
	if password != "" || user != "" && strings.HasPrefix(rawURL, "http") {
		r.user, r.password = user, password
	}
	w.Secret(r.password)
	return r, r.check(text("insecure_auth") != "")
}

// unverified reports whether the certificate of the server is not verified.
func (w World) unverified(given *value.Map) bool {
	verify, set := given.Get("ssl_verify")
	if !set {
		verify, set = w.Options.Get("git_pillar_ssl_verify")
	}
	return set && !value.Truth(verify)
}

// branchAndEnv returns the branch of a repository, and the environment of its files. The branch of git_pillar_base is
// the environment base.
func (w World) branchAndEnv(branch string, text func(string) string) (name, env string) {
	base := text("base")
	if base == "" {
		base = "master"
	}
	switch {
	case branch != environmentBranch:
		env = branch
		if branch == base {
			env = "base"
		}
	default:
		if env = w.env(); env == "base" {
			env = base
		}
		branch = env
		if all := text("all_saltenvs"); all != "" {
			branch = all
		}
	}
	if set := text("env"); set != "" {
		env = set
	}
	return branch, env
}

// inside returns a relative path without leading and trailing slashes, which does not leave its directory.
func inside(dir string) string { return strings.TrimPrefix(path.Clean("/"+dir), "/") }

var branchName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._/@+-]*$`) })

// check refuses repositories whose content another machine on the way could replace, since root acts on it.
func (r remote) check(insecure bool) error {
	for _, name := range []string{r.branch, r.fallback} {
		if name != "" && !branchName().MatchString(name) {
			return fmt.Errorf("%q is not the name of a branch, a tag or a commit", name)
		}
	}
	scheme, rest, found := strings.Cut(r.url, "://")
	switch {
	case !found && path.IsAbs(r.url), !found && shortAddress().MatchString(r.url):
		return nil
	case !found || !slices.Contains([]string{"https", "http", "ssh", "file", "git"}, scheme):
		return diag.External.Hint(fmt.Errorf("%s is not the URL of a repository", redact.URLs(r.url)),
			"write https://host/repository.git, ssh://git@host/repository.git, git@host:repository.git or a path")
	case scheme != "http" && scheme != "git":
		return nil
	}
	return r.checkPlain(rest, insecure)
}

// checkPlain checks a URL without encryption; rest is the URL without its scheme.
func (r remote) checkPlain(rest string, insecure bool) error {
	u, err := url.Parse("http://" + rest)
	if err != nil || !loopback(u.Hostname()) {
		return diag.External.Hint(fmt.Errorf("%s: any machine on the way could change what comes without encryption",
			redact.URLs(r.url)), "use https:// or ssh://")
	}
	if r.password != "" && !insecure {
		return diag.External.Hint(fmt.Errorf("%s: the password would be sent over plain HTTP", redact.URLs(r.url)),
			"use https://, or set insecure_auth: true")
	}
	return nil
}

// shortAddress matches the address of a repository for ssh without a scheme.
var shortAddress = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([A-Za-z0-9._-]+@)?[A-Za-z0-9][A-Za-z0-9.-]*:[^:]`)
})

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
