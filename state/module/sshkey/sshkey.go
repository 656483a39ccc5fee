// Package sshkey parses and formats public keys in OpenSSH's files, and locates these files.
//
// A key has a kind, a base64 text and a comment. In authorized_keys, options may precede it. An option may
// contain a quoted command, so a kind within quotes is part of an option.
package sshkey

import (
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// Key is a public key.
type Key struct {
	Options string // options before the key, separated by commas
	Kind    string // such as ssh-ed25519
	Text    string // base64
	Comment string
}

// Parse parses a line such as `no-pty ssh-rsa AAAA... alice@host`. It returns false for a line without a kind.
// Valid checks the text.
func Parse(line string) (Key, bool) {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' {
		return Key{}, false
	}
	var k Key
	if kind, _ := cutField(line); !isKind(kind) {
		k.Options, line = cutOptions(line)
	}
	var rest string
	k.Kind, rest = cutField(line)
	k.Text, rest = cutField(rest)
	k.Comment = strings.Join(strings.Fields(rest), " ")
	return k, isKind(k.Kind) && k.Text != ""
}

// cutField splits off the first word of a line.
func cutField(line string) (field, rest string) {
	i := strings.IndexAny(line, " \t")
	if i < 0 {
		return line, ""
	}
	return line[:i], strings.TrimLeft(line[i:], " \t")
}

// cutOptions splits a line at the first blank outside of quotes.
func cutOptions(line string) (options, rest string) {
	quoted := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line) && line[i+1] == '"':
			i++
		case c == '"':
			quoted = !quoted
		case (c == ' ' || c == '\t') && !quoted:
			return line[:i], strings.TrimLeft(line[i:], " \t")
		}
	}
	return line, ""
}

func isKind(word string) bool {
	word = strings.TrimPrefix(word, "sk-")
	return strings.HasPrefix(word, "ssh-") || strings.HasPrefix(word, "ecdsa-")
}

// String returns the key as a line of authorized_keys.
func (k Key) String() string {
	line := k.Kind + " " + k.Text
	if k.Options != "" {
		line = k.Options + " " + line
	}
	if k.Comment != "" {
		line += " " + k.Comment
	}
	return line
}

// Label returns a short description of the key for messages.
func (k Key) Label() string {
	if k.Comment != "" {
		return k.Kind + " key " + k.Comment
	}
	return k.Kind + " key ..." + k.Text[max(0, len(k.Text)-8):]
}

// Valid returns an error if the text of the key is not valid base64.
func (k Key) Valid() error {
	raw, err := base64.StdEncoding.DecodeString(k.Text)
	if err != nil || strings.ContainsAny(k.Text, "\r\n") || len(raw) == 0 {
		return diag.SSH.Hint(fmt.Errorf("%s is not a public key: its text is not base64", k.Label()),
			"copy it in one piece, without blanks, from the .pub file")
	}
	return nil
}

// Secret returns an error if a text contains a private key, which must not be in a state or a report.
func Secret(text string) error {
	if !strings.Contains(text, "PRIVATE KEY") {
		return nil
	}
	return diag.SSH.Hint(errors.New("this is a private key, and a public one was expected"),
		"name the .pub file, and take the private key out of the tree")
}

// KindNamed returns the kind of key for a name in SLS files, such as rsa or ed25519.
func KindNamed(enc string) (string, error) {
	switch enc {
	case "r", "rsa":
		return "ssh-rsa", nil
	case "d", "dsa", "dss":
		return "ssh-dss", nil
	case "e", "ecdsa":
		return "ecdsa-sha2-nistp256", nil
	case "ed25519":
		return "ssh-ed25519", nil
	}
	for _, kind := range kinds() {
		if enc == kind || enc == kind+certificate {
			return enc, nil
		}
	}
	return "", diag.SSH.Hint(fmt.Errorf("%q is not a kind of ssh key", enc), "%s", diag.DidYouMean(enc, kinds()))
}

const certificate = "-cert-v01@openssh.com"

func kinds() []string {
	return []string{"ssh-rsa", "ssh-dss", "ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384",
		"ecdsa-sha2-nistp521", "rsa-sha2-256",
		"rsa-sha2-512", "sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com", "sk-ssh-ed25519",
		"sk-ecdsa-sha2-nistp256"}
}

// Path returns the path of a user's file. It may be relative to the home directory. As in sshd_config, %h, %u
// and %% mean the home directory, the user name and a percent sign.
func Path(u host.User, config string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(config); i++ {
		if config[i] != '%' {
			b.WriteByte(config[i])
			continue
		}
		i++
		switch {
		case i < len(config) && config[i] == '%':
			b.WriteByte('%')
		case i < len(config) && config[i] == 'h':
			b.WriteString(u.Home)
		case i < len(config) && config[i] == 'u':
			b.WriteString(u.Name)
		default:
			return "", diag.SSH.Hint(fmt.Errorf("config %s has an unknown sequence after a percent sign", config),
				"%%h is the home, %%u the user, %%%% a percent sign")
		}
	}
	if p := b.String(); path.IsAbs(p) {
		return path.Clean(p), nil
	}
	return path.Join("/", u.Home, b.String()), nil
}
