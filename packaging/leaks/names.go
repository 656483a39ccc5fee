package leaks

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// nameRule is the name of the rule about file names.
const nameRule = "name"

// secretNames returns patterns, in lower case, for the names of files that usually contain secrets. Those with a
// slash match the end of a path.
func secretNames() []string {
	return []string{
		".env", ".env.*", "*.env", ".envrc",
		"*.key", "*.pem", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.keytab", "*.kdb", "*.kdbx", "*.ppk", "*.agekey",
		"*.ovpn",
		"id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk", "id_xmss", "secring.*",
		"credentials", "credentials.json", "credentials.tfrc.json", ".git-credentials", ".netrc", "_netrc", ".authinfo",
		".pgpass", ".my.cnf", ".mylogin.cnf",
		".npmrc", ".pypirc", ".htpasswd", ".s3cfg", ".boto", ".vault-token", ".vault_pass", ".vault_pass.txt", ".dockercfg",
		".dockerconfigjson",
		"*.tfstate", "*.tfstate.*",
		".docker/config.json", ".kube/config", "etc/shadow", "etc/gshadow",
	}
}

// example matches the names of files that are examples of a file with secrets.
var example = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:^|[._-])(?:example|sample|template|tmpl|dist|defaults?|j2|jinja2?)(?:[._-]|$)`)
})

// copied matches the endings of copies of files.
var copied = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`(?:\.(?:bak|backup|old|orig|save|copy|swp|dpkg-(?:old|new|dist)|rpm(?:save|new)|[0-9]+)|~)+$`)
})

// secretName reports whether a file has the name of a secret, or of a copy of one, in any letter case.
func secretName(name string) bool {
	name = strings.ToLower(name)
	if base := path.Base(name); base == "cacert.pem" || example().MatchString(base) {
		return false
	}
	names := []string{name, copied().ReplaceAllString(name, "")}
	return slices.ContainsFunc(secretNames(), func(pattern string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return fits(pattern, name) })
	})
}

// keyName reports whether a file has the name of a key, which may be a public one or a certificate.
func keyName(name string) bool {
	ext := path.Ext(copied().ReplaceAllString(strings.ToLower(name), ""))
	return ext == ".pem" || ext == ".key"
}

// fits reports whether a pattern matches the last elements of a path, as many as it has.
func fits(pattern, name string) bool {
	parts := strings.Split(name, "/")
	n := strings.Count(pattern, "/") + 1
	if len(parts) < n {
		return false
	}
	ok, err := path.Match(pattern, strings.Join(parts[len(parts)-n:], "/"))
	return ok && err == nil
}
