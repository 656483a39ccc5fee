// Package pkgrepo implements pkgrepo.managed and pkgrepo.absent, which manage the repositories of the package
// manager and their signing keys. It edits the configuration files of apt, dnf, yum, zypper, pacman and apk in
// place.
package pkgrepo

import (
	"context"
	"io"

	"github.com/corpus-agent/corpus-agent/state/module"
)

// Sources opens a URL such as salt:// or http://; env is the environment of the state tree.
type Sources interface {
	Open(ctx context.Context, url, env string) (io.ReadCloser, error)
}

// Functions returns the functions of pkgrepo.
func Functions(sources Sources) module.Table {
	return module.Table{
		"managed": func() module.Resource {
			return &managed{keyed: keyed{AllowInsecure: true}, sources: sources}
		},
		"absent": func() module.Resource { return &absent{Refresh: true} },
	}
}
