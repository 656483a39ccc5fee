// Package sshauth implements ssh_auth.present, ssh_auth.absent and ssh_auth.manage, which manage the keys that
// may log in as a user.
//
// A key is identified by its base64 text; options and comment are properties that a state declares. A state
// that declares a key with other options changes only that line. All other lines, including comments and blank
// lines, are preserved. Only manage removes keys that are not declared.
//
// Many states may manage the same file. It is parsed once, and again only after it has changed.
package sshauth

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/owned"
	"github.com/corpus-agent/corpus-agent/state/module/sshkey"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Sources returns the content of files such as salt://keys/alice.pub.
type Sources interface {
	Source(ctx context.Context, url, env string) ([]byte, error)
}

// Functions returns the functions of ssh_auth.
func Functions(sources Sources) module.Table {
	defaults := func() arguments {
		return arguments{Enc: "ssh-rsa", Config: ".ssh/authorized_keys", sources: sources}
	}
	return module.Table{
		"present": func() module.Resource { return &present{arguments: defaults()} },
		"absent":  func() module.Resource { return &absent{arguments: defaults()} },
		"manage":  func() module.Resource { return &manage{arguments: defaults()} },
	}
}

// arguments holds the arguments that all functions have in common.
type arguments struct {
	Name    string   `sls:"name"`
	User    string   `sls:"user,required"`
	Enc     string   `sls:"enc"` // the default kind of keys
	Comment string   `sls:"comment"`
	Source  string   `sls:"source"` // a file of keys, instead of name
	Options []string `sls:"options"`
	// Config is the path of authorized_keys, relative to the home directory; %h and %u mean the home directory and the
	// user.
	Config string `sls:"config"`
	Hash   string `sls:"fingerprint_hash_type"`
	Env    string `sls:"__env__"`

	sources Sources
	target  target
	text    string // the new text of the file, set by Check
}

// target is the file that a state manages.
type target struct {
	user host.User
	path string
	file *file
}

// keys returns the declared key, or those of the source.
func (a *arguments) keys(ctx context.Context, h *host.Host) ([]sshkey.Key, error) {
	if _, err := sshkey.HashNamed(a.Hash); err != nil {
		return nil, err
	}
	if a.Source != "" {
		return a.sourceKeys(ctx, h)
	}
	k, err := a.key(a.Name)
	return []sshkey.Key{k}, err
}

// key parses a key in the notation of SLS files: `[OPTIONS] KIND KEY [COMMENT]` or `KEY [COMMENT]`.
func (a *arguments) key(text string) (sshkey.Key, error) {
	if err := sshkey.Secret(text); err != nil {
		return sshkey.Key{}, err
	}
	k, ok := sshkey.Parse(text)
	if !ok {
		words := strings.Fields(text)
		if len(words) == 0 {
			return sshkey.Key{Kind: a.Enc}, sshkey.Key{Kind: a.Enc}.Valid()
		}
		k = sshkey.Key{Kind: a.Enc, Text: words[0], Comment: strings.Join(words[1:], " ")}
	}
	if k.Options == "" {
		k.Options = strings.Join(a.Options, ",")
	}
	if k.Comment == "" {
		k.Comment = a.Comment
	}
	k.Comment = strings.Join(strings.Fields(k.Comment), " ")
	var err error
	if k.Kind, err = sshkey.KindNamed(k.Kind); err != nil {
		return k, err
	}
	return k, fits(k)
}

// fits returns an error if the line for a key in the file would be parsed as something else.
func fits(k sshkey.Key) error {
	again, ok := sshkey.Parse(k.String())
	if strings.ContainsAny(k.String(), "\r\n") || !ok || again != k {
		return diag.SSH.Hint(fmt.Errorf("the options %q of %s do not fit into a line of authorized_keys", k.Options,
			k.Label()), "put what has blanks into double quotes: from=\"a b\"")
	}
	return nil
}

// sourceKeys parses a file of keys. The argument options is the default for its keys; enc and comment do not
// apply.
func (a *arguments) sourceKeys(ctx context.Context, h *host.Host) ([]sshkey.Key, error) {
	to := host.Recipient{What: "the keys of " + a.User}
	if u, err := owned.User(h, a.User); err == nil {
		to.UID = u.UID
	} else if !errors.Is(err, owned.ErrNoUser) {
		return nil, err
	}
	data, err := a.sources.Source(host.To(ctx, to), a.Source, a.Env)
	if err != nil {
		return nil, err
	}
	if err := sshkey.Secret(string(data)); err != nil {
		return nil, fmt.Errorf("%s: %w", a.Source, err)
	}
	f := parseFile(string(data))
	var keys []sshkey.Key
	for _, k := range f.keys {
		if k.Text == "" {
			continue
		}
		if k.Options == "" {
			k.Options = strings.Join(a.Options, ",")
		}
		if _, err := sshkey.KindNamed(k.Kind); err != nil {
			return nil, fmt.Errorf("%s: %w", a.Source, err)
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, diag.SSH.Hint(fmt.Errorf("%s holds no keys", a.Source),
			"it should have lines of the form KIND KEY COMMENT, as .pub files have")
	}
	return keys, nil
}

// find locates and parses the file. If the user does not exist, the error wraps owned.ErrNoUser.
func (a *arguments) find(h *host.Host) error {
	u, err := owned.User(h, a.User)
	if err != nil {
		return err
	}
	p, err := sshkey.Path(u, a.Config)
	if err != nil {
		return err
	}
	a.target = target{user: u, path: p}
	a.target.file, err = host.Parsed(h, p, parseFile)
	if errors.Is(err, fs.ErrNotExist) {
		a.target.file, err = parseFile(""), nil
	}
	return err
}

// write writes the text that Check computed.
func (a *arguments) write(h *host.Host) (warnings []string, err error) {
	warnings, err = owned.Write(h, a.target.path, a.text, a.target.user, owned.Private)
	if err != nil {
		err = fmt.Errorf("writing the keys of %s: %w", a.User, err)
	}
	return warnings, err
}

// home returns an error if the home directory is missing, since a key does not create it.
func (t target) home(h *host.Host) error {
	if !strings.HasPrefix(t.path, strings.TrimRight(t.user.Home, "/")+"/") {
		return nil
	}
	there, err := owned.IsDirectory(h, t.user.Home)
	if err == nil && !there {
		err = diag.Prerequisite.Hint(fmt.Errorf("the home %s of user %s does not exist", t.user.Home, t.user.Name),
			"let user.present make it with createhome: True, and require that")
	}
	return err
}

// Keys returns the keys that may log in as a user, in the form of Salt's ssh.auth_keys. A missing user or file
// has none.
func Keys(h *host.Host, user, config, hash string) (*value.Map, error) {
	with, err := sshkey.HashNamed(hash)
	if err != nil {
		return nil, err
	}
	a := arguments{User: user, Config: config}
	if err := a.find(h); errors.Is(err, owned.ErrNoUser) {
		return value.NewMap(), nil
	} else if err != nil {
		return nil, err
	}
	m := value.NewMap()
	for _, k := range a.target.file.keys {
		if k.Text == "" {
			continue
		}
		options := value.NewList()
		if k.Options != "" {
			options = value.Strings(strings.Split(k.Options, ",")...)
		}
		m.Set(k.Text, value.NewMap("enc", k.Kind, "comment", k.Comment, "options", options,
			"fingerprint", sshkey.Fingerprint(k.Text, with)))
	}
	return m, nil
}
