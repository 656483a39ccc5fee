// Package deb makes .deb and .rpm packages of a release.
//
// Both hold the release below the recipe's prefix, its systemd units where the system looks for
// them, and the release's content digest, so that a package can be held against the artifact that was
// built with it. Owners are root's and times are fixed: the same release gives the same package.
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
)

// Request is one package.
type Request struct {
	Format  string // deb or rpm
	Tree    string // the release
	Recipe  recipe.Recipe
	Name    string
	Version string
	Prefix  string
	Arch    string // in Go's words; all for any
	Content string // digest of the release's content
	Time    time.Time
}

// units is where packages put systemd units.
const units = "/usr/lib/systemd/system"

// Write makes the package.
func Write(w io.Writer, r Request) error {
	contents, err := r.contents()
	if err != nil {
		return err
	}
	about := r.Recipe.Package
	description := strings.TrimSpace(about.Description)
	if description == "" {
		description = r.Name + " as a release"
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: r.Name, Arch: r.arch(), Platform: "linux", Version: r.version(), VersionSchema: "none", Section: "default", Priority: "optional",
		Maintainer: orDefault(about.Maintainer, "Unknown <unknown@localhost>"), License: about.License, Homepage: about.Homepage,
		Description: description + "\nContent digest: " + r.Content, MTime: r.time(),
		Overridables: nfpm.Overridables{
			Depends: about.Depends, Contents: contents, Umask: 0o022,
			Scripts: nfpm.Scripts{
				PreInstall: r.script(about.PreInstall), PostInstall: r.script(about.PostInstall),
				PreRemove: r.script(about.PreRemove), PostRemove: r.script(about.PostRemove),
			},
			// The name of the machine that built it belongs into no package.
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

// time is what files get; packages know none before 1970 or none at all.
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

// version is the release's version as package managers take it: beginning with a digit, without
// underscores in a .deb and without dashes in an .rpm. What git says of a commit has to change for that.
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

// contents lists the release below the prefix, and its units again where systemd looks.
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
	for _, unit := range r.Recipe.UnitFiles(os.DirFS(r.Tree)) {
		list = append(list, &files.Content{
			Source: filepath.Join(r.Tree, unit), Destination: filepath.Join(units, filepath.Base(unit)),
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: 0o644, MTime: r.time()},
		})
	}
	return list, err
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
