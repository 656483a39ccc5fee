package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// place creates a release's directory with fill, and installs it under its name when it is complete: the source data
// was verified, and so is the list of the content, if it was signed. It calls discard to remove the source data before
// the sync, which would write it to disk. A run that is killed in between leaves a staged release, which the next run
// adopts.
func (f *Fetcher) place(ctx context.Context, release artifact.Release, fill func(*os.Root) (*manifest.Manifest, error),
	discard func() error) (err error) {
	project := f.Layout.Project(release.Project)
	list := f.Layout.Tree(release.Project, release.Dir())
	// New directories are created first, so that their sync does not have to wait for the whole tree.
	if err := errors.Join(durable.MkdirAll(project.Releases(), 0o755),
		durable.MkdirAll(filepath.Dir(list), 0o700)); err != nil {
		return fmt.Errorf("unpacking %s: %w", release, err)
	}
	temp, err := durable.TempDir(project.Releases())
	if err != nil {
		return fmt.Errorf("unpacking %s: %w", release, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, durable.RemoveTemp(ctx, temp))
		}
	}()
	root, err := walk.OpenTree(temp)
	if err != nil {
		return fmt.Errorf("unpacking %s: %w", release, err)
	}
	defer root.Close()
	tree, err := fill(root)
	if err != nil {
		return err
	}
	if err := f.keepTree(release, tree); err != nil {
		return err
	}
	staged := project.Staged(release.Dir())
	if err := errors.Join(os.Chmod(temp, 0o755), durable.RemoveAll(ctx, staged)); err != nil {
		return fmt.Errorf("unpacking %s: %w", release, err)
	}
	if err := os.Rename(temp, staged); err != nil {
		return fmt.Errorf("unpacking %s: %w", release, err)
	}
	if err := discard(); err != nil {
		return fmt.Errorf("unpacking %s: %w", release, err)
	}
	return f.settle(ctx, release, staged)
}

// install renames a staged release to its name. A release whose sync failed is removed: the kernel reports a failed
// write only once, so the next sync would succeed.
func install(ctx context.Context, staged, name, list string) error {
	err := durable.Install(staged, name, list)
	if err != nil {
		err = errors.Join(err, durable.Discard(ctx, staged))
	}
	return err
}

// adopt installs a release that an earlier run unpacked completely before it was killed, if every file of it is as it
// was signed.
func (f *Fetcher) adopt(ctx context.Context, release artifact.Release) (bool, error) {
	project := f.Layout.Project(release.Project)
	staged := project.Staged(release.Dir())
	root, err := walk.OpenTree(staged)
	if found, err := walk.Found(err); err != nil || !found {
		return false, err
	}
	defer root.Close()
	file := f.Layout.Tree(release.Project, release.Dir())
	data, listed, err := walk.Read(file)
	if err != nil {
		return false, err
	}
	if listed {
		want, signed := f.Client.Tree(release)
		list, err := manifest.Decode(data)
		if err == nil && signed && want == manifest.Digest(data) {
			whole, err := list.Complete(ctx, root)
			if err != nil {
				return false, fmt.Errorf("verifying %s: %w", release, err)
			}
			if whole {
				return true, f.settle(ctx, release, staged)
			}
		}
	}
	return false, durable.RemoveAll(ctx, staged)
}

// keepTree compares the list of a tree with the signed one, and writes it for `corpus-agent verify` and for the next
// delta. It is synced to disk when the release is installed.
func (f *Fetcher) keepTree(release artifact.Release, tree *manifest.Manifest) error {
	data := tree.Encode()
	if want, ok := f.Client.Tree(release); ok && want != manifest.Digest(data) {
		return &trust.Refused{Check: trust.CheckDigest, Of: release.String(),
			Err: fmt.Errorf("the digest of its tree is %s, and %s was signed", manifest.Digest(data), want)}
	}
	return durable.WriteSoon(f.Layout.Tree(release.Project, release.Dir()), data, 0o600)
}

// settle installs a staged release under its name. It sets aside what is in its place, unless that is the intact
// release, of which only the list was lost: that directory stays, with what its service has written to it, and nothing
// has to be restarted.
func (f *Fetcher) settle(ctx context.Context, release artifact.Release, staged string) error {
	name, file := f.Layout.Project(release.Project).Release(release.Dir()), f.Layout.Tree(release.Project, release.Dir())
	whole, err := f.Intact(ctx, release, name)
	if err != nil {
		return err
	}
	if whole {
		return errors.Join(durable.Sync(file), durable.SyncDir(filepath.Dir(file)), durable.RemoveAll(ctx, staged))
	}
	aside, err := f.setAside(ctx, release)
	if err != nil {
		return err
	}
	if err := install(ctx, staged, name, file); err != nil {
		if aside != "" {
			err = errors.Join(err, durable.Rename(aside, name))
		}
		return err
	}
	if aside != "" || f.Running[release.Project] == release.Dir() {
		f.Replaced(release)
	}
	return nil
}

// setAside renames the directory of a release that is fetched again, and returns the new path, or "" if there was none.
// It removes directories of the same release that earlier runs set aside.
func (f *Fetcher) setAside(ctx context.Context, release artifact.Release) (string, error) {
	path := f.Layout.Project(release.Project).Release(release.Dir())
	if found, err := walk.Named(path); err != nil || !found {
		return "", err
	}
	damaged := filepath.Join(filepath.Dir(path), "."+strings.TrimPrefix(filepath.Base(path)+layout.DamagedMark, "."))
	earlier, err := walk.Glob(damaged + "*")
	if err != nil {
		return "", err
	}
	aside := damaged + f.Run
	if err := durable.Rename(path, aside); err != nil {
		return "", fmt.Errorf("setting aside %s, which differs from what was unpacked: %w", f.Layout.Inside(path), err)
	}
	f.Progress.Note("%s differed from what was unpacked; it was set aside as %s", f.Layout.Inside(path),
		filepath.Base(aside))
	for _, name := range earlier {
		if err := durable.Discard(ctx, name); err != nil && name != aside {
			f.Progress.Note("%s, which an earlier run set aside, could not be removed: %v", f.Layout.Inside(name), err)
		}
	}
	return aside, nil
}
