package cloud

import (
	"context"
	"strings"
)

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
