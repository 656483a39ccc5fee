// Package host holds host.present, host.absent and host.only: the names and addresses in /etc/hosts.
//
// Two ways of editing follow Salt, since people compare the file before and after. Adding a name rewrites
// the whole file, one line for an address, tabs between; removing one changes only the lines
// of its address.
package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
)

// Functions are the functions of host.
func Functions() module.Table {
	return module.Table{
		"present": func() module.Resource { return &present{} },
		"absent":  func() module.Resource { return &absent{} },
		"only":    func() module.Resource { return &only{} },
	}
}

const path = "/etc/hosts"

// read gives the file; a host without one has no names yet. Nobody may change what it gives.
func read(h *host.Host) (*file, error) {
	f, err := host.Parsed(h, path, parse)
	if errors.Is(err, fs.ErrNotExist) {
		return parse(""), nil
	}
	return f, err
}

// edit is what the functions of host share: Check makes the new text, Apply writes it.
type edit struct {
	text string
	done string // the comment after it is written
}

func (e *edit) Apply(_ context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if err := h.Files.Write(path, host.NewFile{Content: strings.NewReader(e.text), UID: -1, GID: -1}); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: e.done}, nil
}

// addresses makes sure that every address is one.
func addresses(list []string) error {
	var problems []error
	for _, ip := range list {
		if _, err := netip.ParseAddr(ip); err != nil {
			problems = append(problems, fmt.Errorf("%q is no IP address", ip))
		}
	}
	return errors.Join(problems...)
}

// oneName makes sure that a name is one.
func oneName(name string) error {
	if name == "" || strings.ContainsAny(name, " \t\n#") {
		return diag.WithHint(fmt.Errorf("%q is not one host name", name), "give several names as a list in names")
	}
	return nil
}
