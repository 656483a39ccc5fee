// Package sshkey reads and writes public keys as OpenSSH's files hold them, and finds those files.
//
// A key is a kind, a text in base64 and a comment. In authorized_keys options may stand before it,
// and since an option may hold a quoted command, what looks like a kind within quotes is none.
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
	Options string // as they stand before it, joined by commas
	Kind    string // ssh-ed25519
	Text    string // base64
	Comment string
}

// Parse reads a line such as `no-pty ssh-rsa AAAA... somebody@somewhere`. It tells false for a line
// that names no kind of key; whether the text is one is for Valid to say.
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

// cutField cuts the first word off a line.
func cutField(line string) (field, rest string) {
	i := strings.IndexAny(line, " \t")
	if i < 0 {
		return line, ""
	}
	return line[:i], strings.TrimLeft(line[i:], " \t")
}

// cutOptions cuts off everything before the first blank that is not within quotes.
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

// String is the key as a line of authorized_keys.
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

// Label is a short name for people: whose key it is, or how it ends.
func (k Key) Label() string {
	if k.Comment != "" {
		return k.Kind + " key " + k.Comment
	}
	return k.Kind + " key ..." + k.Text[max(0, len(k.Text)-8):]
}

// Valid tells what is wrong with a key's text.
func (k Key) Valid() error {
	raw, err := base64.StdEncoding.DecodeString(k.Text)
	if err != nil || strings.ContainsAny(k.Text, "\r\n") || len(raw) == 0 {
		return diag.WithHint(fmt.Errorf("%s is no public key: its text is not base64", k.Label()),
			"copy it in one piece, without blanks, from the .pub file")
	}
	return nil
}

// Secret tells whether a text holds a private key, which belongs neither into a state nor into what a
// run reports.
func Secret(text string) error {
	if !strings.Contains(text, "PRIVATE KEY") {
		return nil
	}
	return diag.WithHint(errors.New("this is a private key, and a public one was expected"),
		"name the .pub file, and take the private key out of the tree")
}

// KindNamed gives the kind of key an SLS file means: rsa, ed25519 and the like are short names.
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
	return "", diag.WithHint(fmt.Errorf("%q is no kind of ssh key", enc), "%s", diag.DidYouMean(enc, kinds()))
}

const certificate = "-cert-v01@openssh.com"

func kinds() []string {
	return []string{"ssh-rsa", "ssh-dss", "ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384",
		"ecdsa-sha2-nistp521", "rsa-sha2-256",
		"rsa-sha2-512", "sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com", "sk-ssh-ed25519",
		"sk-ecdsa-sha2-nistp256"}
}

// Path is where a file of a user's lies. It may be relative to the home, and %h, %u and %% stand for
// the home, the name and a percent sign, as in sshd_config.
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
			return "", diag.WithHint(fmt.Errorf("config %s has a percent sign that stands for nothing", config),
				"%%h is the home, %%u the user, %%%% a percent sign")
		}
	}
	if p := b.String(); path.IsAbs(p) {
		return path.Clean(p), nil
	}
	return path.Join("/", u.Home, b.String()), nil
}
