// Package image fetches images of guests for a node: releases that the store has signed, outside of a deploy.
package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/agent/fetch"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/unpack"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Wanted identifies a release by its signed properties.
type Wanted struct {
	Project, Version string
	Digest           artifact.Digest
}

// Pull unpacks a release below dir, in a directory with the hexadecimal digits of its digest as name, and returns that
// directory. It keeps the list of the content beside the directory. It replaces a directory whose content differs from
// its list, or that has no list. It verifies the store with the root and the metadata in trusted, the directory of the
// host's trust, in which it writes nothing. It returns an error for a withdrawn release, and for one that the store has
// signed with another digest.
func Pull(ctx context.Context, s store.Store, trusted, dir string, w Wanted) (string, error) {
	tree := filepath.Join(dir, w.Digest.Hex())
	if whole, err := complete(ctx, tree); whole || err != nil {
		return tree, err
	}
	client, done, err := reader(s, trusted)
	if err != nil {
		return "", err
	}
	defer done()
	if err := client.Refresh(ctx); err != nil {
		return "", err
	}
	release, err := find(ctx, client, w)
	if err != nil {
		return "", err
	}
	return tree, place(ctx, client, release, dir, tree)
}

// reader returns a client that starts from the metadata that the host has seen, and stores its own in a temporary
// directory.
func reader(s store.Store, trusted string) (*trust.Client, func(), error) {
	root, err := trust.ReadRoot(filepath.Join(trusted, "root.json"))
	if err != nil {
		return nil, nil, diag.Root.Hint(fmt.Errorf("reading the root of trust: %w", err),
			"deploy this host first: corpus-agent deploy --trust-root FILE")
	}
	dir, done, err := durable.Scratch()
	if err != nil {
		return nil, nil, err
	}
	err = trust.Pin(dir, root)
	if err == nil {
		err = trust.Remind(dir, trusted, root)
	}
	var client *trust.Client
	if err == nil {
		client, err = trust.Open(s, dir, nil)
	}
	if err != nil {
		done()
	}
	return client, done, err
}

// find returns the release that the store signs, unless it is withdrawn.
func find(ctx context.Context, client *trust.Client, w Wanted) (artifact.Release, error) {
	release, signed, err := client.Signed(ctx, w.Project, w.Version, w.Digest)
	if err != nil && !errors.Is(err, trust.ErrNoProject) {
		return artifact.Release{}, err
	}
	if !signed {
		return artifact.Release{},
			diag.Unpublished.Hint(fmt.Errorf("the store has not signed %s %s with the digest %s", w.Project, w.Version,
				w.Digest), "`corpus ls` lists what is signed; corpus guest image corrects the cloud")
	}
	withdrawn, err := client.Withdrawn(ctx, release)
	if withdrawn != nil {
		err = diag.Withdrawn.Hint(fmt.Errorf("%s %s was withdrawn: %s", w.Project, w.Version, withdrawn.Yank.Reason),
			"choose another image: corpus guest image")
	}
	return release, err
}

// listOf returns the path of the list of an image.
func listOf(tree string) string { return tree + ".list" }

// complete reports whether an image has exactly the content of its list.
func complete(ctx context.Context, tree string) (bool, error) {
	list, _, err := fetch.ReadTree(listOf(tree))
	if err != nil || list == nil { // a damaged list is replaced with the image
		return false, err
	}
	root, err := walk.OpenTree(tree)
	if found, err := walk.Found(err); err != nil || !found {
		return false, err
	}
	defer root.Close()
	return list.Complete(ctx, root)
}

// place fetches a release and installs it under its name, replacing an incomplete one. It writes the list first.
func place(ctx context.Context, client *trust.Client, r artifact.Release, dir, tree string) error {
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := durable.Sweep(ctx, dir); err != nil {
		return err
	}
	temp, err := durable.TempDir(dir)
	if err != nil {
		return err
	}
	list, err := unpackTo(ctx, client, r, temp)
	if err == nil {
		err = errors.Join(durable.RemoveAll(ctx, tree), durable.WriteFile(listOf(tree), list, 0o600))
	}
	if err == nil {
		err = durable.Install(temp, tree)
	}
	if err != nil {
		return errors.Join(err, durable.RemoveTemp(context.WithoutCancel(ctx), temp))
	}
	return nil
}

// unpackTo fetches and unpacks a release, and returns the list of its content.
func unpackTo(ctx context.Context, client *trust.Client, r artifact.Release, temp string) ([]byte, error) {
	file, err := durable.TempFile(filepath.Dir(temp))
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	verified, err := client.Fetch(ctx, r, file, nil)
	if err != nil {
		return nil, err
	}
	into, err := walk.OpenTree(temp)
	if err != nil {
		return nil, err
	}
	defer into.Close()
	unpacked, err := unpack.Into(ctx, verified, into, unpack.Limits{})
	if err != nil {
		return nil, err
	}
	return unpacked.Tree.Encode(), nil
}
