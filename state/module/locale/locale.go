// Package locale holds locale.present and locale.system: the languages that programs on the host can
// speak, and the one that they speak unless told otherwise.
package locale

import (
	"context"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
)

// Functions are the functions of locale.
func Functions() module.Table {
	known := &known{}
	return module.Table{
		"present": func() module.Resource { return &present{known: known} },
		"system":  func() module.Resource { return &system{known: known} },
	}
}

// known remembers which locales there are, as long as the files are the same that they were read
// from: asking locale(1) takes longer than all the rest.
type known struct {
	mu    sync.Mutex
	as    [2]host.Info
	names map[string]bool // in their normal form
}

// has tells whether a locale is there, whatever way its name is written.
func (k *known) has(ctx context.Context, h *host.Host, name string) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	as := files(h)
	if k.names == nil || as != k.as {
		names, err := list(ctx, h)
		if err != nil {
			return false, err
		}
		k.names, k.as = names, as
	}
	return k.names[normal(name)], nil
}

// files describes where locales are kept: one archive, or a directory for each.
func files(h *host.Host) (as [2]host.Info) {
	for i, path := range []string{"/usr/lib/locale", "/usr/lib/locale/locale-archive"} {
		as[i], _ = h.Files.Stat(path) // one that is not there is one like no other
		as[i].Accessed = as[i].Changed
	}
	return as
}
