// Package alias implements alias.present and alias.absent, which manage mail aliases.
//
// Only the lines of the named alias change in /etc/aliases. Afterwards newaliases updates the database of the
// mail system. Below a root it does not run, and the state reports a warning.
package alias

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Functions returns the functions of alias.
func Functions() module.Table {
	return module.Table{
		"present": func() module.Resource { return &present{} },
		"absent":  func() module.Resource { return &absent{} },
	}
}

const path = "/etc/aliases"

// read returns the text of the file, "" if it does not exist.
func read(h *host.Host) (string, error) {
	data, err := h.Files.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(data), err
}

// edit holds the name of the alias and the new text of the file, which Check computes and Apply writes.
type edit struct {
	Name string `sls:"name"`

	text string
}

func (e *edit) Valid() error {
	if e.Name == "" || strings.ContainsAny(e.Name, ":#\n") {
		return fmt.Errorf("%q is not an alias", e.Name)
	}
	return nil
}

func (e *edit) diff(comment string) module.Diff {
	return module.Diff{Changes: value.NewMap("alias", e.Name), Planned: value.NewMap(), Comment: comment}
}

func (e *edit) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if err := h.Files.Write(path, host.NewFile{Content: strings.NewReader(e.text), UID: -1, GID: -1}); err != nil {
		return module.Report{}, err
	}
	report := module.Report{Changes: d.Changes, Comment: fmt.Sprintf("%s was written for %s", path, e.Name)}
	if err := tell(ctx, h); err != nil {
		report.Warnings = []string{fmt.Sprintf("the mail system has not loaded it yet: %v", err)}
	}
	return report, nil
}

// tell runs newaliases, which updates the database of the mail system. If there is no such program, there is no mail
// system and tell does nothing.
func tell(ctx context.Context, h *host.Host) error {
	tool, ok := h.Which("newaliases")
	if !ok {
		return nil
	}
	out, err := h.Commands.Run(ctx, host.Command{Argv: []string{tool}, Limit: time.Minute})
	if err != nil {
		return err
	}
	if out.Code != 0 {
		return fmt.Errorf("newaliases ended with code %d: %s", out.Code, strings.TrimSpace(out.Stderr))
	}
	return nil
}

// present implements alias.present.
type present struct {
	edit
	Target []string `sls:"target,required"`
}

func (p *present) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if err := p.Valid(); err != nil {
		return module.Diff{}, err
	}
	target := strings.Join(p.Target, ", ")
	if strings.TrimSpace(target) == "" || strings.ContainsAny(target, "#\n") {
		return module.Diff{}, diag.Argument.Hint(fmt.Errorf("%q is not a target for the alias %s", target, p.Name),
			"name an address, a user or a list of them")
	}
	text, err := read(h)
	if err != nil {
		return module.Diff{}, err
	}
	f := parse(text)
	if now := f.find(p.Name); now != nil && now.target == target {
		return module.Diff{Comment: fmt.Sprintf("%s goes to %s", p.Name, target)}, nil
	}
	p.text = f.with(p.Name, target)
	return p.diff(fmt.Sprintf("%s would go to %s", p.Name, target)), nil
}

// absent implements alias.absent.
type absent struct{ edit }

func (a *absent) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if err := a.Valid(); err != nil {
		return module.Diff{}, err
	}
	text, err := read(h)
	if err != nil {
		return module.Diff{}, err
	}
	f := parse(text)
	if f.find(a.Name) == nil {
		return module.Diff{Comment: fmt.Sprintf("there is no alias %s", a.Name)}, nil
	}
	a.text = f.with(a.Name, "")
	return a.diff(fmt.Sprintf("the alias %s would be removed", a.Name)), nil
}
