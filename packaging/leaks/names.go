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
	names := []string{name}
	if original := copied().ReplaceAllString(name, ""); original != name {
		names = append(names, original)
	}
	secret := slices.ContainsFunc(patterns(), func(p pattern) bool { return slices.ContainsFunc(names, p.fits) })
	base := path.Base(name)
	return secret && base != "cacert.pem" && !example().MatchString(base)
}

// pattern is a pattern, and a text that is in every name that it fits.
type pattern struct{ text, part string }

// patterns returns the patterns for names.
var patterns = sync.OnceValue(func() []pattern {
	var all []pattern
	for _, text := range secretNames() {
		parts := strings.Split(text, "*")
		all = append(all, pattern{text, slices.MaxFunc(parts, func(a, b string) int { return len(a) - len(b) })})
	}
	return all
})

// keyName reports whether a file has the name of a key, which may be a public one or a certificate.
func keyName(name string) bool {
	ext := path.Ext(copied().ReplaceAllString(strings.ToLower(name), ""))
	return ext == ".pem" || ext == ".key"
}

// fits reports whether the pattern matches the last elements of a path, as many as it has.
func (p pattern) fits(name string) bool {
	if !strings.Contains(name, p.part) {
		return false
	}
	parts := strings.Split(name, "/")
	n := strings.Count(p.text, "/") + 1
	if len(parts) < n {
		return false
	}
	ok, err := path.Match(p.text, strings.Join(parts[len(parts)-n:], "/"))
	return ok && err == nil
}
