package pkg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// file is a package that is installed from a file.
type file struct {
	name   string // name of the package
	url    string
	path   string // path on the host; "" before it is copied
	copied bool   // path is a copy to be discarded
}

// fileJob returns the job of a state with sources. To compare an installed package it reads only the start of
// the file.
func (i *installed) fileJob(ctx context.Context, h *host.Host, v *host.Inventory) (job, error) {
	pairs, err := namedList(i.Files, "sources")
	if err != nil {
		return job{}, err
	}
	var j job
	for _, p := range pairs {
		f := file{name: i.listName(v, p.name), url: versionText(p.value)}
		if f.url == "" {
			return j, diag.Argument.Hint(fmt.Errorf("sources does not say where the file of package %s is", f.name),
				"write `- %s: URL`", f.name)
		}
		f.path = localPath(f.url)
		w := wanted{name: f.name}
		j.all = append(j.all, w)
		if v.Version(f.name) == "" {
			j.targets, j.files = append(j.targets, w), append(j.files, f)
			continue
		}
		if err := i.compareFile(ctx, h, v, f, &j); err != nil {
			return j, err
		}
	}
	j.holds = holdsFor(v, j.all, i.Hold)
	return j, nil
}

// compareFile adds an installed package to the job if its file has another version.
func (i *installed) compareFile(ctx context.Context, h *host.Host, v *host.Inventory, f file, j *job) error {
	if i.Reinstall {
		j.again, j.files = append(j.again, wanted{name: f.name}), append(j.files, f)
		return nil
	}
	p, err := i.describe(ctx, h, f)
	if err != nil {
		return err
	}
	if p.Version != v.Version(f.name) {
		j.targets, j.files = append(j.targets, wanted{name: f.name, version: p.Version}), append(j.files, f)
	}
	return nil
}

// describe returns the name and version in a package file. It returns an error if the name is not the one in sources.
func (i *installed) describe(ctx context.Context, h *host.Host, f file) (host.Package, error) {
	r, err := i.open(ctx, h, f)
	if err != nil {
		return host.Package{}, fmt.Errorf("reading the file of package %s: %w", f.name, err)
	}
	defer r.Close()
	p, err := h.Packages.Describe(r)
	if err != nil {
		return p, fmt.Errorf("reading %s: %w", f.url, err)
	}
	base, _, _ := strings.Cut(f.name, ":")
	if p.Name != base {
		return p, diag.Argument.Hint(fmt.Errorf("%s is package %s, and not %s", f.url, p.Name, f.name),
			"write `- %s: %s` in sources", p.Name, f.url)
	}
	return p, nil
}

func (i *installed) open(ctx context.Context, h *host.Host, f file) (io.ReadCloser, error) {
	if f.path != "" {
		return h.Files.Open(f.path)
	}
	return i.sources.Open(ctx, f.url, i.SLSEnv)
}

// localPath returns the path of a URL that denotes a file of the host itself, or "".
func localPath(url string) string {
	if path := strings.TrimPrefix(url, "file://"); strings.HasPrefix(path, "/") {
		return path
	}
	return ""
}

// onHost returns the packages of a transaction for files. All files must be on the host.
func (j *job) onHost() ([]host.Wanted, error) {
	order := make([]host.Wanted, 0, len(j.files))
	for _, f := range j.files {
		if f.path == "" {
			return nil, fmt.Errorf("what %s brings along is known once it is here", f.url)
		}
		order = append(order, host.Wanted{Name: f.name, File: f.path})
	}
	return order, nil
}

// fetch copies the files to the host. It returns an error if one of them is another package than the named one.
func (j *job) fetch(ctx context.Context, h *host.Host, i *installed) error {
	for n := range j.files {
		f := &j.files[n]
		if f.path == "" {
			if err := f.copy(ctx, h, i); err != nil {
				return err
			}
		}
		p, err := i.describe(ctx, h, *f)
		if err != nil {
			return err
		}
		for t := range j.targets {
			if j.targets[t].name == f.name {
				j.targets[t].version = p.Version
			}
		}
	}
	return nil
}

func (f *file) copy(ctx context.Context, h *host.Host, i *installed) error {
	r, err := i.sources.Open(ctx, f.url, i.SLSEnv)
	if err != nil {
		return fmt.Errorf("fetching package %s: %w", f.name, err)
	}
	defer r.Close()
	root, err := h.TempRoot()
	if err != nil {
		return fmt.Errorf("fetching package %s: %w", f.name, err)
	}
	// zypper ignores files whose names begin with a dot.
	path, mode := root+"/"+strings.TrimPrefix(host.TempName("package-*"+ending(h.Packages.Family())), "."),
		fs.FileMode(0o644)
	if err := h.Files.Write(path, host.NewFile{Content: r, Mode: &mode, UID: -1, GID: -1}); err != nil {
		return errors.Join(fmt.Errorf("fetching package %s: %w", f.name, err), h.Files.RemoveAll(path))
	}
	f.path, f.copied = path, true
	return nil
}

// ending returns the extension by which the package manager recognizes package files.
func ending(family string) string {
	switch family {
	case "dnf", "yum", "zypper":
		return ".rpm"
	case "pacman":
		return ".pkg.tar"
	case "apk":
		return ".apk"
	}
	return ".deb"
}

// discard removes the copies.
func (j *job) discard(h *host.Host) {
	for _, f := range j.files {
		if f.copied {
			_ = h.Files.Remove(f.path) // a file that remains is removed with the rest of /tmp at boot
		}
	}
}
