// Package sshknownhosts implements ssh_known_hosts.present and ssh_known_hosts.absent, which manage the host
// keys that ssh trusts.
//
// The states read and write the files without ssh-keygen, so that a check starts no process. A declared key is
// written as it is. If only a fingerprint is declared, or neither, Apply queries the host with ssh-keyscan. A
// dry run reports that it would. Without a fingerprint, a host that is already known is not queried again.
//
// On request, names are hashed one by one, so that the file does not reveal which hosts its user visits. The
// lines of other hosts are preserved.
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

// Functions returns the functions of ssh_known_hosts.
func Functions() module.Table {
	return module.Table{
		"present": func() module.Resource { return &present{HashHosts: true, Timeout: 5} },
		"absent":  func() module.Resource { return &absent{} },
	}
}

// place is the file that a state manages: that of a user or of all users.
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

// find locates and parses the file. If the user does not exist, the error wraps owned.ErrNoUser.
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
		return p.locateSystems()
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

// locateSystems sets the path and the owner of the file for all users.
func (p *place) locateSystems() error {
	p.path, p.owner = systemsFile, host.User{Name: "root"}
	if p.Config != "" {
		p.path = p.Config
	}
	if !path.IsAbs(p.path) {
		return diag.SSH.Hint(fmt.Errorf("config %s is relative, and there is no user whose home it would be in", p.Config),
			"name a user, or give config as an absolute path")
	}
	return nil
}

// where returns a description of the file for messages, even if its user does not exist.
func (p *place) where() string {
	if p.path == "" {
		return "the file of user " + p.User
	}
	return p.path
}

// write replaces the content of the file.
func (p *place) write(h *host.Host, text string) (warnings []string, err error) {
	kept := owned.Private
	if p.User == "" {
		kept = owned.Public // all users must be able to read it
	}
	warnings, err = owned.Write(h, p.path, text, p.owner, kept)
	if err != nil {
		err = fmt.Errorf("writing %s: %w", p.path, err)
	}
	return warnings, err
}

// fingerprints returns the function that computes fingerprints.
func fingerprints(hash string) (func(text string) string, error) {
	with, err := sshkey.HashNamed(hash)
	return func(text string) string { return sshkey.Fingerprint(text, with) }, err
}
