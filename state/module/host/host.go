// Package host implements host.present, host.absent and host.only, which manage the names and addresses in
// /etc/hosts.
//
// The states edit the file in the same two ways as Salt, so that the results are equal. Adding a name rewrites the
// whole file with one line for each address and tabs as separators. Removing a name changes only the lines of its
// address.
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

// Functions returns the functions of host.
func Functions() module.Table {
	return module.Table{
		"present": func() module.Resource { return &present{} },
		"absent":  func() module.Resource { return &absent{} },
		"only":    func() module.Resource { return &only{} },
	}
}

const path = "/etc/hosts"

// read returns the parsed file, which is empty if it does not exist. Callers must not change it.
func read(h *host.Host) (*file, error) {
	f, err := host.Parsed(h, path, parse)
	if errors.Is(err, fs.ErrNotExist) {
		return parse(""), nil
	}
	return f, err
}

// edit holds the new text of the file, which Check computes and Apply writes.
type edit struct {
	text string
	done string // the comment of the result
}

func (e *edit) Apply(_ context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if err := h.Files.Write(path, host.NewFile{Content: strings.NewReader(e.text), UID: -1, GID: -1}); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: e.done}, nil
}

// addresses returns an error for each text that is not an IP address.
func addresses(list []string) error {
	var problems []error
	for _, ip := range list {
		if _, err := netip.ParseAddr(ip); err != nil {
			problems = append(problems, fmt.Errorf("%q is not an IP address", ip))
		}
	}
	return errors.Join(problems...)
}

// oneName returns an error if a name is not a single host name.
func oneName(name string) error {
	if name == "" || strings.ContainsAny(name, " \t\n#") {
		return diag.Argument.Hint(fmt.Errorf("%q is not one host name", name), "give several names as a list in names")
	}
	return nil
}
