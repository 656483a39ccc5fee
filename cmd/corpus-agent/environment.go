package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// useEnvironment sets the variables of /etc/corpus/environment, so that a command that root types does what the unit
// does. Variables that are set already have priority, and if they name credentials of a store, so do they all. The
// caller must have called checkConfiguration.
func (p *program) useEnvironment() {
	if p.fromFile != nil || os.Geteuid() != 0 && !p.layout().Relocated() {
		return
	}
	p.fromFile = []config.Variable{}
	text, err := readEnvironment(p.layout().EnvironmentFile())
	if err != nil {
		p.unused = config.ParseEnvironment(text)
		fmt.Fprintf(p.Err, "warning: the variables of the environment file are not used: %v\n", err)
		if hint := diag.HintOf(err); hint != "" {
			fmt.Fprintf(p.Err, "  hint: %s\n", hint)
		}
		return
	}
	p.fromFile = config.ParseEnvironment(text)
	p.setVariables()
}

func (p *program) setVariables() {
	given := slices.ContainsFunc(credentials(), p.isSet)
	for _, v := range p.fromFile {
		if p.isSet(v.Name) || v.Name == "CORPUS_ROOT" || given && slices.Contains(credentials(), v.Name) {
			continue
		}
		_ = os.Setenv(v.Name, v.Value) // the name is valid
	}
	p.config = cmp.Or(p.config, p.Getenv("CORPUS_CONFIG"))
}

func (p *program) isSet(name string) bool { return p.Getenv(name) != "" }

// credentials lists the variables of credentials of a store, which belong together.
func credentials() []string {
	return []string{
		"MINIO_ACCESS_KEY", "MINIO_SECRET_KEY", "MINIO_ROOT_USER", "MINIO_ROOT_PASSWORD",
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_PROFILE",
	}
}

// readEnvironment reads the environment file, which may be missing. Only its owner, who is root or this user, may be
// able to read or write it. With the error about a file that others can only read, it returns the text, since the unit
// uses it: what is secret in it must not be shown.
func readEnvironment(path string) (string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return "", diag.Exposed.Hint(fmt.Errorf("%s belongs to user %d", path, st.Uid), "chown root %s", path)
	}
	mode := info.Mode().Perm()
	if mode&0o022 != 0 {
		return "", exposed(path, mode)
	}
	data, err := walk.ReadGiven(path)
	switch {
	case err != nil:
		return "", err
	case mode&0o077 != 0:
		return string(data), exposed(path, mode)
	}
	return string(data), nil
}

func exposed(path string, mode fs.FileMode) error {
	return diag.Exposed.Hint(fmt.Errorf("%s has mode %#o: other users can read or write it", path, mode),
		"chmod 600 %s, and replace the credentials in it", path)
}

// shortest is the length in bytes of the shortest value that is taken for a secret: shorter ones, such as true or a
// number, would be removed from every text.
const shortest = 6

// secrets returns the secrets of the environment file: all values but those of settings.
func (p *program) secrets() (all []string) {
	for _, v := range slices.Concat(p.fromFile, p.unused) {
		if len(v.Value) >= shortest && !setting(v.Name) {
			all = append(all, v.Value)
		}
	}
	return all
}

// setting reports whether a variable is known to hold no secret.
func setting(name string) bool {
	switch {
	case strings.HasPrefix(name, "CORPUS_KEY_"), name == "CORPUS_PASSPHRASE":
		return false
	case strings.HasPrefix(name, "CORPUS_"), strings.HasSuffix(name, "_FILE"), strings.HasSuffix(name, "_REGION"),
		strings.HasSuffix(name, "_PROFILE"):
		return true
	}
	return slices.Contains([]string{"AWS_ACCESS_KEY_ID", "MINIO_ACCESS_KEY", "AWS_ROLE_ARN", "HOME", "PATH", "LANG", "TZ",
		"NO_PROXY", "no_proxy"}, name)
}
