// Package pkgrepo holds pkgrepo.managed and pkgrepo.absent: the repositories of a package manager, and the keys that
// they are signed with. It edits the files of apt, dnf, zypper, pacman and apk in place.
package pkgrepo

import (
	"context"
	"io"

	"github.com/corpus-agent/corpus-agent/state/module"
)

// Sources opens what a URL names, in an environment of the state tree: salt://, http:// and so on.
type Sources interface {
	Open(ctx context.Context, url, env string) (io.ReadCloser, error)
}

// Functions are the functions of pkgrepo.
func Functions(sources Sources) module.Table {
	return module.Table{
		"managed": func() module.Resource {
			return &managed{keyed: keyed{AllowInsecure: true}, sources: sources}
		},
		"absent": func() module.Resource { return &absent{Refresh: true} },
	}
}
