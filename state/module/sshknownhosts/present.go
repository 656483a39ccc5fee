package sshknownhosts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/outage"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/owned"
	"github.com/corpus-agent/corpus-agent/state/module/sshkey"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// present implements ssh_known_hosts.present.
type present struct {
	place
	Name        string `sls:"name"`
	Fingerprint string `sls:"fingerprint"`
	Key         string `sls:"key"`
	Port        int    `sls:"port"`
	Enc         string `sls:"enc"`
	HashHosts   bool   `sls:"hash_known_hosts"`
	Timeout     int    `sls:"timeout"` // in seconds
	Hash        string `sls:"fingerprint_hash_type"`

	kind        string // the full name of enc
	fingerprint func(text string) string
	obstacle    error // the reason why Apply would fail now
}

func (p *present) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if err := p.Valid(); err != nil {
		return module.Diff{}, err
	}
	err := p.find(h)
	switch {
	case errors.Is(err, owned.ErrNoUser):
		// Below a root no user is created, so the key is skipped like its user.
		if skipped := h.Accounts.Allowed("user " + p.User); skipped != nil {
			return module.Diff{}, skipped
		}
		p.obstacle = err
	case err != nil:
		return module.Diff{}, err
	}
	if p.known() {
		return module.Diff{Comment: fmt.Sprintf("host %s is known in %s", p.Name, p.path)}, nil
	}
	d := module.Diff{Planned: value.NewMap(),
		Comment: fmt.Sprintf("the key of host %s would be added to %s", p.Name, p.where())}
	if p.obstacle != nil {
		d.Missing = append(d.Missing, p.obstacle)
	}
	if p.Key != "" {
		d.Changes = p.changes(p.given())
		return d, nil
	}
	d.Unknown, d.Comment = true, fmt.Sprintf("host %s would be asked for its keys, for %s", p.Name, p.where())
	return d, h.Commands.Allowed("asking host " + p.Name + " for its keys")
}

func (p *present) Valid() error {
	var err error
	if p.fingerprint, err = fingerprints(p.Hash); err != nil {
		return err
	}
	switch {
	case p.Name == "" || strings.ContainsAny(p.Name, " \t\n,") || strings.HasPrefix(p.Name, "-"):
		return fmt.Errorf("%q is not the name of one host", p.Name)
	case p.Key != "" && p.Fingerprint != "" && p.fingerprint(p.Key) != p.Fingerprint:
		return diag.SSH.Hint(fmt.Errorf("the key that is given does not have the fingerprint %s", p.Fingerprint),
			"correct one of them, or leave the fingerprint out; fingerprint_hash_type says how fingerprints are made")
	case p.Key != "" && p.Enc == "":
		return diag.SSH.Hint(errors.New("a key is given and not of which kind it is"),
			"add enc: ssh-ed25519, or what the key starts with")
	case p.Port != 0 && p.Port != usualPort && p.HashHosts:
		return diag.SSH.Hint(fmt.Errorf("port %d cannot be given where the host's name is hashed", p.Port),
			"set hash_known_hosts: False")
	}
	if p.Enc != "" {
		if p.kind, err = sshkey.KindNamed(p.Enc); err != nil {
			return err
		}
	}
	if p.Key != "" {
		return sshkey.Key{Kind: p.kind, Text: p.Key}.Valid()
	}
	return nil
}

// known reports whether the file has the declared key.
func (p *present) known() bool {
	entries := p.file.find(sshName(p.Name, p.Port), true)
	switch {
	case p.Key != "":
		return slices.ContainsFunc(entries, func(e entry) bool { return e.key == p.Key })
	case p.Fingerprint != "":
		return slices.ContainsFunc(entries, func(e entry) bool { return p.fingerprint(e.key) == p.Fingerprint })
	}
	return len(entries) > 0
}

// given returns the entry of a declared key.
func (p *present) given() []entry {
	return []entry{{names: sshName(p.Name, p.Port), kind: p.kind, key: p.Key}}
}

// changes returns the old and the new entries. As in Salt, the new entry of a declared key has no fingerprint, and its
// port is separate from the name.
func (p *present) changes(added []entry) *value.Map {
	old := report(p.file.find(sshName(p.Name, p.Port), true), p.fingerprint)
	if p.Key == "" {
		return value.NewMap("old", old, "new", report(added, p.fingerprint))
	}
	m := value.NewMap("hostname", p.Name, "enc", p.Enc, "key", p.Key)
	if p.Port != 0 && p.Port != usualPort {
		m.Set("port", p.Port)
	}
	return value.NewMap("old", old, "new", value.NewList(m))
}

func (p *present) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	if p.obstacle != nil {
		return module.Report{}, p.obstacle
	}
	added := p.given()
	if p.Key == "" {
		var err error
		if added, err = p.scan(ctx, h); err != nil {
			return module.Report{}, err
		}
	}
	changes := p.changes(added)
	// A host has one key of each kind, so the new keys replace the old ones.
	stale := func(e entry) bool {
		return slices.ContainsFunc(added, func(n entry) bool { return n.kind == e.kind })
	}
	lines := slices.Clone(added)
	for i := range lines {
		if p.HashHosts {
			lines[i].names = hash(lines[i].names)
		}
	}
	warnings, err := p.write(h, p.file.text(sshName(p.Name, p.Port), stale, lines))
	if err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: changes, Comment: fmt.Sprintf("the key of host %s is in %s", p.Name, p.path),
		Warnings: warnings}, nil
}

// scan returns the keys of the host, which it queries with ssh-keyscan.
func (p *present) scan(ctx context.Context, h *host.Host) ([]entry, error) {
	tool, ok := h.Which("ssh-keyscan")
	if !ok {
		return nil, diag.Program.Hint(errors.New("ssh-keyscan is not installed"),
			"install openssh-client, or give the host's key with key and enc")
	}
	limit := time.Duration(p.Timeout+10) * time.Second
	out, err := h.Commands.Run(ctx, host.Command{Argv: p.scanCommand(tool), Limit: limit, Quiet: true})
	if err != nil {
		return nil, fmt.Errorf("asking host %s for its keys: %w", p.Name, err)
	}
	var found []entry
	for line := range strings.SplitSeq(out.Stdout, "\n") {
		if e, ok := parseEntry(line); ok {
			e.names = sshName(p.Name, p.Port)
			found = append(found, e)
		}
	}
	return found, outage.Recognize(ctx, out.Stderr, p.judge(found))
}

// scanCommand returns the command that asks the host for its keys.
func (p *present) scanCommand(tool string) []string {
	argv := []string{tool, "-T", strconv.Itoa(p.Timeout)}
	if p.Port != 0 {
		argv = append(argv, "-p", strconv.Itoa(p.Port))
	}
	if p.Enc != "" {
		argv = append(argv, "-t", p.kind)
	}
	return append(argv, "--", p.Name)
}

// judge returns an error if the keys that a host presented cannot be trusted.
func (p *present) judge(found []entry) error {
	if len(found) == 0 {
		return diag.SSH.Hint(fmt.Errorf("host %s presented no keys", p.Name),
			"see whether it can be reached at its ssh port, or give its key with key and enc")
	}
	match := func(e entry) bool { return p.fingerprint(e.key) == p.Fingerprint }
	if p.Fingerprint != "" && !slices.ContainsFunc(found, match) {
		return diag.SSH.Hint(fmt.Errorf("host %s presented keys, but none with the fingerprint %s", p.Name, p.Fingerprint),
			"find out whether the host has new keys; if it has none, another host may have answered. fingerprint_hash_type "+
				"says how fingerprints are made")
	}
	return nil
}
