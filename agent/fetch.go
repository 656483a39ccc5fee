package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/unpack"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// fetch makes both releases of a pair directories on this host. One that is there is complete,
// since it got its name last.
func (r *run) fetch(ctx context.Context, client *trust.Client, pair ledger.Pair) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, release := range pair.Releases() {
		if r.has(release) {
			continue
		}
		group.Go(func() error { return r.fetchRelease(ctx, client, release) })
	}
	return explainSpace(group.Wait())
}

// has reports whether a release is unpacked on this host.
func (r *run) has(release artifact.Release) bool {
	info, err := os.Stat(r.project(release.Project).Release(release.Dir()))
	return err == nil && info.IsDir()
}

func explainSpace(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return diag.WithHint(err, "make room, or lower keep.releases in agent.yaml; nothing on the host was changed")
	}
	return err
}

func (r *run) fetchRelease(ctx context.Context, client *trust.Client, release artifact.Release) error {
	if err := durable.MkdirAll(r.Layout.Incoming(), 0o700); err != nil {
		return fmt.Errorf("fetching %s: %w", release, err)
	}
	file, err := durable.TempFile(r.Layout.Incoming())
	if err != nil {
		return fmt.Errorf("fetching %s: %w", release, err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	var done int64
	verified, err := client.Fetch(ctx, release, file, func(n int) {
		done += int64(n)
		r.record.Fetching(release.String(), done, release.Length)
	})
	if err != nil {
		return err
	}
	return r.unpack(ctx, verified)
}

// unpack makes a directory of an artifact and gives it its name when it is complete.
func (r *run) unpack(ctx context.Context, verified *trust.Verified) (err error) {
	release := verified.Release()
	project := r.project(release.Project)
	if err := durable.MkdirAll(project.Releases(), 0o755); err != nil {
		return fmt.Errorf("unpacking %s: %w", release, err)
	}
	temp, err := durable.TempDir(project.Releases())
	if err != nil {
		return fmt.Errorf("unpacking %s: %w", release, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temp))
		}
	}()
	root, err := os.OpenRoot(temp)
	if err != nil {
		return fmt.Errorf("unpacking %s: %w", release, err)
	}
	defer root.Close()
	limits := unpack.Limits{Bytes: r.Config.UnpackBytes, Files: r.Config.UnpackFiles}
	if _, err := unpack.Into(ctx, verified, root, limits); err != nil {
		return err
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return fmt.Errorf("unpacking %s: %w", release, err)
	}
	return durable.Install(temp, project.Release(release.Dir()))
}
