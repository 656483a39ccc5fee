package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
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
// able to read or write it.
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
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return "", diag.Exposed.Hint(fmt.Errorf("%s has mode %#o: other users can read or write it", path, mode),
			"chmod 600 %s", path)
	}
	data, err := walk.ReadGiven(path)
	return string(data), err
}

// secretName matches the names of variables with secrets.
var secretName = regexp.MustCompile(`SECRET|TOKEN|PASSW|PASSPHRASE`)

// secrets returns the secrets of the environment file.
func (p *program) secrets() (all []string) {
	for _, v := range p.fromFile {
		if secretName.MatchString(v.Name) {
			all = append(all, v.Value)
		}
	}
	return all
}
