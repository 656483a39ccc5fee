package archive

import (
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// Contents holds the names in an archive, sorted.
type Contents struct {
	Dirs  []string // with a trailing slash
	Files []string
	Links []string
}

// All returns all names, sorted.
func (c Contents) All() []string {
	all := slices.Concat(c.Dirs, c.Files, c.Links)
	slices.Sort(all)
	return all
}

// Top returns the names that are in no directory.
func Top(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return strings.Contains(strings.TrimSuffix(name, "/"), "/")
	})
}

// List lists an archive on the host. format is tar or zip; "" means to use the extension. strip is the number
// of leading directories to remove from each name. The default limits of archive.extracted apply.
func List(ctx context.Context, h *host.Host, file, format string, strip int) (Contents, error) {
	if format == "" {
		format = formatOf(file)
	}
	if format != "tar" && format != "zip" {
		return Contents{}, diag.Archive.Hint(fmt.Errorf("the name of %s does not show the format of the archive",
			path.Base(file)), "set archive_format to tar or zip")
	}
	x := &extracted{source: Source{Path: file}, format: format, options: options{strip: strip}}
	var c Contents
	err := x.walk(ctx, h, func(e entry, _ io.Reader) error {
		c.add(e)
		return nil
	})
	for _, names := range [][]string{c.Dirs, c.Files, c.Links} {
		slices.Sort(names)
	}
	return c, err
}

// add adds the name of an entry to those of its kind.
func (c *Contents) add(e entry) {
	switch e.kind {
	case directory:
		c.Dirs = append(c.Dirs, e.name+"/")
	case symlink:
		c.Links = append(c.Links, e.name)
	default:
		c.Files = append(c.Files, e.name)
	}
}
