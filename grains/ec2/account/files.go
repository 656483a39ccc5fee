package account

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// section is a section of ~/.aws/config or ~/.aws/credentials. A key that is indented below a key without a value has
// both names, with a line feed between them.
type section map[string]string

// readSections reads the sections of a file. As with the SDK, a file that cannot be opened has none, a directory is an
// error, and a line with a syntax error is skipped. A named pipe, which would block the SDK, is an error too.
func readSections(file string) (map[string]section, error) {
	f, err := walk.OpenGiven(file)
	if errors.Is(err, walk.ErrNoFile) {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	defer f.Close()
	if err := checkFile(f); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, 16<<20))
	if err != nil {
		return nil, err
	}
	r := reader{sections: map[string]section{}}
	for line := range strings.SplitSeq(string(text), "\n") {
		if start := strings.TrimSpace(line); start != "" && start[0] != '#' && start[0] != ';' {
			r.line(line)
		}
	}
	return r.sections, nil
}

// reader reads a file line by line.
type reader struct {
	sections map[string]section
	current  section // nil before the first
	key      string  // the last one, without indentation
}

func (r *reader) line(line string) {
	if name, is := sectionName(line); is {
		if r.sections[name] == nil {
			r.sections[name] = section{}
		}
		r.current, r.key = r.sections[name], ""
		return
	}
	if r.current == nil {
		return
	}
	indented := line[0] == ' ' || line[0] == '\t'
	if !indented {
		line = withoutComment(line, " #", " ;", "\t#", "\t;")
	}
	switch key, value, is := pair(line); {
	case is && indented && r.key != "" && r.current[r.key] == "":
		r.current[r.key+"\n"+key] = value
	case is && indented:
		r.set(key, strings.TrimSpace(withoutComment(value, " #", " ;", "\t#", "\t;")))
	case is:
		r.set(key, value)
	case indented && r.current[r.key] != "":
		r.current[r.key] += "\n" + strings.TrimLeft(line, " \t")
	}
}

func (r *reader) set(key, value string) { r.current[key], r.key = value, key }

// sectionName reads "[name]" and "[kind name]".
func sectionName(line string) (string, bool) {
	line = strings.TrimSpace(withoutComment(line, "#", ";"))
	if len(line) < 2 || line[0] != '[' || line[len(line)-1] != ']' {
		return "", false
	}
	name := strings.TrimSpace(line[1 : len(line)-1])
	if i := strings.IndexAny(name, " \t"); i >= 0 {
		name = name[:i] + " " + strings.TrimLeft(name[i:], " \t")
	}
	return name, true
}

// pair reads "key = value" and "key: value". The value may be quoted.
func pair(line string) (key, value string, is bool) {
	i := strings.IndexAny(line, "=:")
	if i < 0 {
		return "", "", false
	}
	value = strings.TrimSpace(line[i+1:])
	if n := len(value); n > 1 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		value = value[1 : n-1]
	}
	return strings.ToLower(strings.TrimSpace(line[:i])), value, true
}

func withoutComment(line string, starts ...string) string {
	for _, start := range starts {
		line, _, _ = strings.Cut(line, start)
	}
	return line
}

// home returns the path of a file in the user's .aws.
func home(name string) string {
	dir, _ := os.UserHomeDir()
	if dir == "" { // services of systemd have no HOME
		if u, err := user.Current(); err == nil {
			dir = u.HomeDir
		}
	}
	return filepath.Join(dir, ".aws", name)
}

// sharedFiles reads both files. Sections of config get the names of those of credentials, whose keys take precedence.
func sharedFiles() (map[string]section, error) {
	configFile := cmp.Or(os.Getenv("AWS_CONFIG_FILE"), home("config"))
	credentialsFile := cmp.Or(os.Getenv("AWS_SHARED_CREDENTIALS_FILE"), home("credentials"))
	config, err := readSections(configFile)
	if err != nil {
		return nil, err
	}
	credentials, err := readSections(credentialsFile)
	if err != nil {
		return nil, err
	}
	all := map[string]section{}
	for name, s := range config {
		profile, is := strings.CutPrefix(name, "profile ")
		switch {
		case is:
			all[profile] = s
		case name == "default" && config["profile default"] == nil, strings.HasPrefix(name, "services "):
			all[name] = s
		}
	}
	for name, s := range credentials {
		if !strings.HasPrefix(name, "profile ") {
			all[name] = all[name].with(s)
		}
	}
	return all, nil
}

// with returns the section with keys of another, which take precedence. The two parts of an access key never come from
// two files.
func (s section) with(more section) section {
	all := section{}
	maps.Copy(all, s)
	if s.half() || more.has("aws_access_key_id") || more.has("aws_secret_access_key") {
		delete(all, "aws_access_key_id")
		delete(all, "aws_secret_access_key")
		delete(all, "aws_session_token")
	}
	maps.Copy(all, more)
	return all
}

func (s section) has(key string) bool {
	_, is := s[key]
	return is
}

// half reports whether the section has only one part of an access key.
func (s section) half() bool { return s.has("aws_access_key_id") != s.has("aws_secret_access_key") }

// any reports whether one of the keys has a value.
func (s section) any(keys ...string) bool {
	for _, key := range keys {
		if s[key] != "" {
			return true
		}
	}
	return false
}

// keys returns the access keys in a section.
func (s section) keys() aws.Credentials {
	return aws.Credentials{
		AccessKeyID: s["aws_access_key_id"], SecretAccessKey: s["aws_secret_access_key"],
		SessionToken: s["aws_session_token"],
		AccountID:    s["aws_account_id"], Source: "profile",
	}
}

// profile is a section with the settings of an account.
type profile struct {
	section
	name   string
	source *profile // profile whose credentials are used to request those of the role
}

// readProfile reads a profile of the files, and those that it refers to; seen has the profiles that refer to it.
func readProfile(all map[string]section, name string, seen map[string]bool) (*profile, error) {
	s, is := all[name]
	if !is {
		return nil, diag.Credentials.Hint(fmt.Errorf("there is no profile %s in the files of AWS: %w", name, fs.ErrNotExist),
			"aws configure list-profiles shows the profiles there are")
	}
	p := &profile{section: maps.Clone(s), name: name}
	if err := p.check(seen[name]); err != nil {
		return nil, fmt.Errorf("profile %s: %w", name, err)
	}
	if len(seen) > 0 && p.keys().HasKeys() {
		return p, nil
	}
	seen[name] = true
	return p, p.readSource(all, seen)
}

// check reports missing and contradictory settings. A profile that is its own source only provides credentials.
func (p *profile) check(again bool) error {
	if p.half() {
		return errors.New("it has one of aws_access_key_id and aws_secret_access_key, and needs both")
	}
	if again {
		p.drop("role_arn", "external_id", "mfa_serial", "role_session_name", "source_profile")
	}
	ways := []string{"source_profile", "credential_source", "web_identity_token_file", "credential_process"}
	if !again && p.section["role_arn"] == "" && p.any(ways[:3]...) {
		return errors.New("it has a source of credentials for a role, and no role_arn")
	}
	found := 0
	for _, way := range ways {
		if p.section[way] != "" {
			found++
		}
	}
	if found > 1 {
		return fmt.Errorf("it has more than one of %s", strings.Join(ways, ", "))
	}
	return nil
}

func (p *profile) drop(keys ...string) {
	for _, key := range keys {
		delete(p.section, key)
	}
}

// readSource reads the profile in source_profile, which must have credentials.
func (p *profile) readSource(all map[string]section, seen map[string]bool) error {
	name := p.section["source_profile"]
	if name == "" {
		return nil
	}
	p.drop("aws_access_key_id", "aws_secret_access_key", "aws_session_token", "sso_account_id", "sso_start_url")
	source, err := readProfile(all, name, seen)
	if err != nil {
		return fmt.Errorf("source_profile of profile %s: %w", p.name, err)
	}
	if !source.keys().HasKeys() && source.source == nil && !source.person() &&
		!source.any("credential_source", "web_identity_token_file", "credential_process") {
		return fmt.Errorf("source_profile of profile %s: profile %s has no credentials", p.name, name)
	}
	p.source = source
	return nil
}

// person reports whether the profile only works for people who sign in.
func (p *profile) person() bool {
	return p.any("sso_session", "sso_account_id", "sso_start_url", "login_session")
}
