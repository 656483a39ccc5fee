// Package deb makes .deb and .rpm packages of a release.
//
// Both contain the release below the recipe's prefix, its systemd units in the system's directory, its rendered
// configuration, and the release's content digest, so that a package can be compared with the artifact of the same
// build. Files belong to root and times are fixed: the same release gives the same package.
package deb

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // nfpm finds its formats by registration
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"

	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/packaging/installed"
)

// Request is one package.
type Request struct {
	Format  string // deb or rpm
	Tree    string // the release
	Recipe  recipe.Recipe
	Name    string
	Version string
	Prefix  string
	Arch    string           // architecture as Go names it; all for any
	Content string           // digest of the release's content
	Files   []installed.File // files outside the prefix
	Scratch string           // a directory for temporary files
	Time    time.Time
}

// Write makes the package.
func Write(w io.Writer, r Request) error {
	contents, err := r.contents()
	if err != nil {
		return err
	}
	about := r.Recipe.Package
	scripts, err := r.scripts().write(about)
	if err != nil {
		return fmt.Errorf("making the %s: %w", r.Format, err)
	}
	description := strings.TrimSpace(about.Description)
	if description == "" {
		description = r.Name + " as a release"
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: r.Name, Arch: r.arch(), Platform: "linux", Version: r.version(), VersionSchema: "none", Section: "default",
		Priority:   "optional",
		Maintainer: orDefault(about.Maintainer, "Unknown <unknown@localhost>"), License: about.License,
		Homepage:    about.Homepage,
		Description: description + "\nContent digest: " + r.Content, MTime: r.time(),
		Overridables: nfpm.Overridables{
			Depends: about.Depends, Contents: contents, Umask: 0o022,
			Scripts: scripts,
			// The name of the building machine must not be in the package.
			RPM: nfpm.RPM{BuildHost: "localhost", Summary: firstLine(description), Compression: "zstd"},
			Deb: nfpm.Deb{Compression: "xz", Fields: map[string]string{"Corpus-Content-Digest": r.Content}},
		},
	})
	if err := nfpm.PrepareForPackager(info, r.Format); err != nil {
		return fmt.Errorf("making the %s: %w", r.Format, err)
	}
	packager, err := nfpm.Get(r.Format)
	if err != nil {
		return err
	}
	if err := packager.Package(info, w); err != nil {
		return fmt.Errorf("making the %s: %w", r.Format, err)
	}
	return nil
}

// time returns the modification time of files. Packages cannot have times before 1970, or none.
func (r Request) time() time.Time {
	if r.Time.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return r.Time.UTC()
}

func (r Request) arch() string {
	switch {
	case r.Arch != "":
		return r.Arch
	case r.Format == "rpm":
		return "noarch"
	}
	return "all"
}

// version returns the release's version in the form of package managers: it begins with a digit, and has no
// underscores in a .deb and no dashes in an .rpm. The output of git describe must be changed for that.
func (r Request) version() string {
	v := r.Version
	if v == "" || v[0] < '0' || v[0] > '9' {
		v = "0+" + v
	}
	if r.Format == "rpm" {
		return strings.ReplaceAll(v, "-", "_")
	}
	return strings.ReplaceAll(v, "_", ".")
}

func (r Request) script(name string) string {
	if name == "" {
		return ""
	}
	return filepath.Join(r.Tree, name)
}

// contents returns the release below the prefix, and the files outside it.
func (r Request) contents() (files.Contents, error) {
	var list files.Contents
	err := filepath.WalkDir(r.Tree, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(r.Tree, file)
		if err != nil {
			return err
		}
		c, err := r.content(file, filepath.Join(r.Prefix, name), d)
		if err == nil {
			list = append(list, c)
		}
		return err
	})
	if err != nil {
		return list, err
	}
	return r.withFiles(list)
}

// withFiles adds the files outside of the prefix to the contents of a package.
func (r Request) withFiles(list files.Contents) (files.Contents, error) {
	for i, f := range r.Files {
		c, err := r.elsewhere(f, filepath.Join(r.Scratch, fmt.Sprintf("file-%d", i)))
		if err != nil {
			return list, err
		}
		list = append(list, c)
	}
	return list, nil
}

// elsewhere returns a file outside the prefix. Configuration that an administrator changed is kept.
func (r Request) elsewhere(f installed.File, source string) (*files.Content, error) {
	c := &files.Content{
		Source: source, Destination: f.Target, Type: files.TypeConfigNoReplace,
		FileInfo: &files.ContentFileInfo{Owner: orDefault(f.User, "root"), Group: orDefault(f.Group, "root"), Mode: f.Mode,
			MTime: r.time()},
	}
	if f.Unit {
		c.Type = files.TypeFile
	}
	return c, os.WriteFile(source, f.Data, 0o600)
}

func (r Request) content(file, target string, d fs.DirEntry) (*files.Content, error) {
	info := &files.ContentFileInfo{Owner: "root", Group: "root", MTime: r.time()}
	switch {
	case d.IsDir():
		info.Mode = 0o755
		return &files.Content{Destination: target, Type: files.TypeDir, FileInfo: info}, nil
	case d.Type() == fs.ModeSymlink:
		link, err := os.Readlink(file)
		info.Mode = 0o777
		return &files.Content{Source: link, Destination: target, Type: files.TypeSymlink, FileInfo: info}, err
	}
	stat, err := d.Info()
	if err != nil {
		return nil, err
	}
	info.Mode = 0o644
	if stat.Mode()&0o111 != 0 {
		info.Mode = 0o755
	}
	return &files.Content{Source: file, Destination: target, Type: files.TypeFile, FileInfo: info}, nil
}

func orDefault(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
