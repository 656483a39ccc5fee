// Package locale implements locale.present, which generates locales, and locale.system, which sets the default
// locale of the host.
package locale

import (
	"context"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
)

// Functions returns the functions of locale.
func Functions() module.Table {
	known := &known{}
	return module.Table{
		"present": func() module.Resource { return &present{known: known} },
		"system":  func() module.Resource { return &system{known: known} },
	}
}

// known caches the installed locales as long as their files do not change, since locale(1) takes longer than
// everything else in a check.
type known struct {
	mu    sync.Mutex
	as    [2]host.Info
	names map[string]bool // in normal form
}

// has reports whether a locale is installed, under any notation of its name.
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

// files returns the metadata of the places of locales: a directory for each, or one archive.
func files(h *host.Host) (as [2]host.Info) {
	for i, path := range []string{"/usr/lib/locale", "/usr/lib/locale/locale-archive"} {
		as[i], _ = h.Files.Stat(path) // a missing file has zero metadata
		as[i].Accessed = as[i].Changed
	}
	return as
}
