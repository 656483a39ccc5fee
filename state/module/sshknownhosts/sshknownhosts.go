// Package sshknownhosts holds ssh_known_hosts.present and ssh_known_hosts.absent: the hosts whose keys ssh
// believes.
//
// The files are read and written here and not through ssh-keygen, so that a state that finds its host
// starts no process. A key that is given is written as it is. Where only a fingerprint is given, or
// nothing, the host itself is asked by ssh-keyscan, which acts: a dry run says that it would, and
// without a fingerprint a host that is known is not asked again.
//
// Names are hashed on request, one by one, so that a stolen file does not tell where its user goes.
// Lines of other hosts are left as they are.
package sshknownhosts

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/owned"
	"github.com/corpus-agent/corpus-agent/state/module/sshkey"
)

// Functions are the functions of ssh_known_hosts.
func Functions() module.Table {
	return module.Table{
		"present": func() module.Resource { return &present{HashHosts: true, Timeout: 5} },
		"absent":  func() module.Resource { return &absent{} },
	}
}

// place is the file a state is about: a user's, or that of all users.
type place struct {
	User   string `sls:"user"`
	Config string `sls:"config"`

	owner host.User
	path  string
	file  *file
}

const (
	usersFile   = ".ssh/known_hosts"
	systemsFile = "/etc/ssh/ssh_known_hosts"
)

// find finds the file. The error wraps owned.ErrNoUser where there is nobody to own it.
func (p *place) find(h *host.Host) error {
	p.file = parseFile("")
	if err := p.locate(h); err != nil {
		return err
	}
	f, err := host.Parsed(h, p.path, parseFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	p.file = f
	return err
}

func (p *place) locate(h *host.Host) error {
	if p.User == "" {
		p.path, p.owner = systemsFile, host.User{Name: "root"}
		if p.Config != "" {
			p.path = p.Config
		}
		if !path.IsAbs(p.path) {
			return diag.WithHint(fmt.Errorf("config %s is relative, and there is no user whose home it would be in", p.Config),
				"name a user, or give config as an absolute path")
		}
		return nil
	}
	u, err := owned.User(h, p.User)
	if err != nil {
		return err
	}
	p.owner, p.path = u, p.Config
	if p.path == "" {
		p.path = usersFile
	}
	if !path.IsAbs(p.path) {
		p.path = path.Join("/", u.Home, p.path)
	}
	return nil
}

// where names the file for people, also before its user is there.
func (p *place) where() string {
	if p.path == "" {
		return "the file of user " + p.User
	}
	return p.path
}

// write replaces the file's content.
func (p *place) write(h *host.Host, text string) (warnings []string, err error) {
	kept := owned.Private
	if p.User == "" {
		kept = owned.Public // it is there for every user to read
	}
	warnings, err = owned.Write(h, p.path, text, p.owner, kept)
	if err != nil {
		err = fmt.Errorf("writing %s: %w", p.path, err)
	}
	return warnings, err
}

// fingerprints gives the function that makes them.
func fingerprints(hash string) (func(text string) string, error) {
	with, err := sshkey.HashNamed(hash)
	return func(text string) string { return sshkey.Fingerprint(text, with) }, err
}
