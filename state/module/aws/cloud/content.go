package cloud

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// Uninterrupted returns a context that an interrupt does not cancel, for a request whose answer has a secret that AWS
// shows only once, and for writing it.
func Uninterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), longestAnswer)
}

// CheckSaveDir returns an error unless a directory exists in which a secret is to be written that AWS shows only once.
func CheckSaveDir(h *host.Host, dir string) error {
	if h == nil {
		return nil
	}
	if !filepath.IsAbs(dir) {
		return diag.WithHint(fmt.Errorf("%s is to take the secret half of the key, and is not an absolute path", dir),
			"write the whole path")
	}
	info, err := h.Files.Stat(dir)
	switch {
	case err != nil:
		return diag.WithHint(fmt.Errorf("the directory for the secret half of the key: %w", err), "make the directory first")
	case !info.IsDir():
		return diag.WithHint(fmt.Errorf("%s is to take the secret half of the key, and is not a directory", dir),
			"name a directory")
	}
	return nil
}

// Content is an argument that SLS files give as a text or as the salt:// URL of a file with it.
type Content string

// Read returns the text: the argument itself, or the content of the file of the tree that it names. env is the
// environment of URLs that name none.
func (c Content) Read(ctx context.Context, of *Cloud, env string) (string, error) {
	if !strings.HasPrefix(string(c), "salt://") || of.Source == nil {
		return string(c), nil
	}
	data, err := of.Source(ctx, string(c), env)
	return string(data), Failed("reading", string(c), err)
}
