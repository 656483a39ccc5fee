package main

import (
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/source"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
)

func (p *program) buildCommand() *cobra.Command {
	var how buildHow
	var fetch source.Options
	c := &cobra.Command{
		Use:   "build TREE -o FILE...",
		Short: "Build a tree into an artifact, packages and images",
		Long: `build packs a directory. The same tree gives the same bytes on every machine, so the digest identifies the
tree. Files that a host would refuse to unpack are errors, and so are files that look like secrets, unless
corpus.yaml allows them by name. Directories named .git are left out.

A corpus.yaml in the tree may name a builder, and FILE may end in .tar.zst, .deb, .rpm or .oci.tar: all of them
are made by one build and contain the same files. Beside the first one, build writes FILE.spdx.json, which lists
its content, and FILE.provenance.json, which says what it was built from.

Files get the time at which a host unpacks them, unless SOURCE_DATE_EPOCH is set.

TREE may be a URL too: file:///dir, or a git repository at a branch, tag or commit. The version is then
that tag, or the beginning of the commit, and the provenance names repository and commit.`,
		Example: `  corpus build ./myapp -o myapp-1.0.tar.zst
  corpus build ./myapp -o myapp-1.0.tar.zst -o myapp-1.0.deb --version 1.0
  corpus build ./myapp --check
  corpus build 'git::https://example.com/myapp.git?ref=v1.0' -o myapp-1.0.tar.zst
  corpus build 'git::https://example.com/myapp.git?ref=5f0c1e2a9b7d4c3e8f60a1b2c3d4e5f60718293a' -o myapp.deb`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			tree, done, err := fetched(args[0], func(dst string) (err error) {
				how.commit, err = source.Tree(c.Context(), args[0], dst, fetch)
				return err
			})
			if err != nil {
				return err
			}
			defer done()
			return p.build(c.Context(), tree, how)
		},
	}
	cli.RepeatedVar(c.Flags(), &how.outputs, "output", "o", "file to write; may be given several times")
	c.Flags().StringVar(&how.version, "version", "", "version, in place of the one from corpus.yaml or git")
	c.Flags().StringVar(&how.onTop, "image-base", "",
		"directory, tar archive or OCI image layout for the base of the image, in place of package.base in corpus.yaml")
	limitFlag(c, &fetch)
	c.Flags().BoolVar(&how.check, "check", false, "build twice and name the files that differ")
	return c
}

// limitFlag adds the flag for the size of a source that is a URL.
func limitFlag(c *cobra.Command, fetch *source.Options) {
	c.Flags().Int64Var(&fetch.Limit, "max-source", 5<<30,
		"largest number of bytes to fetch from a URL; for a tree, of all its files")
}

// fetched returns a local path for a path or URL of the command line. The content of a URL is fetched into a
// temporary directory, under its own name, which exists until done is called.
func fetched(named string, fetch func(dst string) error) (file string, done func(), err error) {
	if !strings.Contains(named, "://") {
		return named, func() {}, nil
	}
	dir, done, err := durable.Scratch()
	if err != nil {
		return "", nil, err
	}
	name := "source"
	if u, err := url.Parse(strings.TrimPrefix(named, "git::")); err == nil && path.Base(u.Path) != "/" &&
		path.Base(u.Path) != "." {
		name = strings.TrimSuffix(path.Base(u.Path), ".git")
	}
	file = filepath.Join(dir, name)
	if err := fetch(file); err != nil {
		done()
		return "", nil, exit.WithCode(exit.Usage, err)
	}
	return file, done, nil
}
