package cloud

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// SecretFile returns the path of the file in a directory that takes the secret half of a key, which AWS shows only
// once. A slash in the name is not one of the path, and names that differ have files that differ.
func SecretFile(dir, name string) string {
	return filepath.Join(dir, strings.NewReplacer("%", "%25", "/", "%2F").Replace(name))
}

// CheckSecretFile returns an error unless a secret can be written to a new file: its directory exists, nothing is at
// its path, and no other key of the run is written there. h is nil if no host is known.
func (c *Cloud) CheckSecretFile(h *host.Host, path, key string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other := c.secrets[path]; other != "" && other != key {
		return diag.Contradiction.Hint(fmt.Errorf("%s is to take the secret halves of %s and of %s", path, other, key),
			"name another directory for one of them")
	}
	if c.secrets == nil {
		c.secrets = map[string]string{}
	}
	c.secrets[path] = key
	if h == nil {
		return nil
	}
	dir := filepath.Dir(path)
	if !filepath.IsAbs(dir) {
		return diag.Argument.Hint(fmt.Errorf("%s is to take the secret half of the key, and is not an absolute path", dir),
			"write the whole path")
	}
	info, err := h.Files.Stat(dir)
	switch {
	case err != nil:
		return diag.Prerequisite.Hint(fmt.Errorf("the directory for the secret half of the key: %w", err),
			"make the directory first")
	case !info.IsDir():
		return diag.Path.Hint(fmt.Errorf("%s is to take the secret half of the key, and is not a directory", dir),
			"name a directory")
	}
	if _, err := h.Files.Lstat(path); err == nil {
		return diag.Path.Hint(fmt.Errorf("%s exists, and is not replaced by the secret half of %s", path, key),
			"move it away")
	}
	return nil
}

// LostSecret returns a warning if the file with the secret half of a key is missing, or lacks one of the texts: AWS
// shows the secret half only once. h is nil if no host is known.
func LostSecret(h *host.Host, path, key, way string, texts ...string) []string {
	if h == nil {
		return nil
	}
	data, err := h.Files.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []string{fmt.Sprintf("%s is missing, which had the secret half of %s: %s", path, key, way)}
	case err != nil:
		return []string{fmt.Sprintf("whether the secret half of %s is in %s is unknown: %v", key, path, err)}
	}
	for _, text := range texts {
		if !strings.Contains(string(data), text) {
			return []string{fmt.Sprintf("%s lacks %s, one of %s: %s", path, text, key, way)}
		}
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
