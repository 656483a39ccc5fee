package trust

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// head returns the snapshot's entry for a project's head; nil if the whole list is used.
func (c *Client) head(project string) *tuf.MetaFiles {
	head := c.set.Snapshot.Signed.Meta[MetaName(HeadRole(project))]
	whole := c.set.Snapshot.Signed.Meta[MetaName(project)]
	if head == nil || whole != nil && whole.Version > head.Version {
		return nil
	}
	return head
}

// loadHead verifies a project's head from the kept files or from the store. The library checks it like any role, in a
// set whose snapshot has the head under the project's name.
func (c *Client) loadHead(ctx context.Context, project string, meta *tuf.MetaFiles) (*Role, error) {
	set := c.headSet(project, meta)
	update := func(data []byte) error {
		return guardFile(data, func() error { err := set.UpdateDelegatedTargets(data, project, targetsRole); return err })
	}
	local, err := c.seen.load(roleFile(project))
	if err != nil {
		return nil, err
	}
	if local == nil || update(local) != nil {
		err := c.eachStore(ctx, RoleKey(HeadRole(project), meta.Version), c.limit(meta), func(data []byte) error {
			if err := update(data); err != nil {
				return refuseFile(MetaName(HeadRole(project)), data, c.Delegation(project), err)
			}
			return c.seen.keep(roleFile(project), data)
		})
		if err != nil {
			return nil, err
		}
	}
	role := set.Targets[project]
	digests, err := pageDigests(role)
	if err != nil {
		return nil, malformed(MetaName(HeadRole(project)), err)
	}
	c.set.Targets[project] = role
	return role, c.seen.keepPages(ctx, project, digests)
}

func (c *Client) headSet(project string, meta *tuf.MetaFiles) *tuf.Set {
	snapshot := *c.set.Snapshot
	snapshot.Signed.Meta = map[string]*tuf.MetaFiles{MetaName(project): meta}
	return &tuf.Set{
		Root: c.set.Root, Timestamp: c.set.Timestamp, Snapshot: &snapshot, RefTime: c.set.RefTime,
		Targets: map[string]*Role{targetsRole: c.set.Targets[targetsRole]},
	}
}

// Whole returns a copy of everything that a project's keys have signed, with every version, for a publisher to change
// and sign.
func (c *Client) Whole(ctx context.Context, project string) (*Role, error) {
	role, err := c.Project(ctx, project)
	if err != nil {
		return nil, err
	}
	all, err := c.Complete(ctx, project, role)
	if err == nil {
		c.extend(project, all.Signed.Targets)
	}
	return all, err
}

// Complete returns a copy of a project's role with every version, for roles in either form.
func (c *Client) Complete(ctx context.Context, project string, role *Role) (*Role, error) {
	all, err := c.join(ctx, project, role)
	if err != nil {
		return nil, err
	}
	return all, c.addCapped(ctx, project, all)
}

// Current returns the current file of a project in the snapshot: the head, or the whole list if that is newer; meta is
// nil for a project that never published.
func (c *Client) Current(project string) (role string, meta *tuf.MetaFiles) {
	if head := c.head(project); head != nil {
		return HeadRole(project), head
	}
	return project, c.set.Snapshot.Signed.Meta[MetaName(project)]
}

// addCapped adds the versions that are missing from a capped whole list of an older publisher, from the previous head.
func (c *Client) addCapped(ctx context.Context, project string, all *Role) error {
	if c.set.Snapshot == nil {
		return nil // only the root is known, and the role is signed again unchanged
	}
	meta := c.set.Snapshot.Signed.Meta[MetaName(HeadRole(project))]
	if meta == nil || c.head(project) != nil {
		return nil
	}
	if over, err := c.Over(project); err != nil || over {
		return err
	}
	set := c.headSet(project, meta)
	set.RefTime = time.Time{} // an old head may have expired
	err := c.eachStore(ctx, RoleKey(HeadRole(project), meta.Version), c.limit(meta), func(data []byte) error {
		update := func() error { err := set.UpdateDelegatedTargets(data, project, targetsRole); return err }
		if err := guardFile(data, update); err != nil {
			return refuseFile(MetaName(HeadRole(project)), data, c.Delegation(project), err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	before, err := c.join(ctx, project, set.Targets[project])
	if err != nil {
		return err
	}
	for target, file := range before.Signed.Targets {
		if all.Signed.Targets[target] == nil {
			all.Signed.Targets[target] = file
		}
	}
	return nil
}

// join is like Join, with the pages read by this client, several concurrently.
func (c *Client) join(ctx context.Context, project string, head *Role) (*Role, error) {
	digests, err := Pages(head)
	if err != nil {
		return nil, malformed(project, err)
	}
	data, err := c.readPages(ctx, project, digests)
	if err != nil {
		return nil, err
	}
	return Join(project, head, func(d artifact.Digest) ([]byte, error) { return data[slices.Index(digests, d)], nil })
}

// readPages reads pages of a project, several concurrently, and returns them in the order of their digests.
func (c *Client) readPages(ctx context.Context, project string, digests []artifact.Digest) ([][]byte, error) {
	data, errs := make([][]byte, len(digests)), make([]error, len(digests))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(pageReaders, len(digests)) {
		workers.Go(func() {
			for i := range next {
				data[i], errs[i] = c.pageData(ctx, project, digests[i])
			}
		})
	}
	for i := range digests {
		next <- i
	}
	close(next)
	workers.Wait()
	if errors.Join(errs...) != nil {
		return nil, firstOf(errs)
	}
	return data, nil
}

// pageReaders is the number of pages that are read concurrently.
const pageReaders = 8

func firstOf(errs []error) error {
	return errs[slices.IndexFunc(errs, func(err error) bool { return err != nil })]
}

// pageData reads a page from the kept files, or from the first store that has the signed bytes. It is safe for
// concurrent use.
func (c *Client) pageData(ctx context.Context, project string, digest artifact.Digest) ([]byte, error) {
	if data := c.seen.page(project, digest); data != nil {
		return data, nil
	}
	key := PageKey(project, digest)
	var data []byte
	err := c.eachStore(ctx, key, maxMetadata, func(page []byte) error {
		if got := digestOf(page); got != digest {
			return &Refused{Check: CheckDigest, Of: key, Err: fmt.Errorf("its digest is %s, and %s was signed", got, digest)}
		}
		data = page
		return nil
	})
	if errors.Is(err, store.ErrNotFound) {
		err = diag.StoreLost.Hint(fmt.Errorf("a page of the versions of %s is missing: %w", project, err),
			"`corpus refresh --rebuild` restores it if a publisher has kept it, or from the list of all versions; "+
				"otherwise restore %s from a backup or a mirror", key)
	}
	if err != nil {
		return nil, c.AddSigners(project, err)
	}
	return data, c.seen.keepPage(ctx, project, digest, data)
}

// Learn reads the signed target of a release that is not in the project's head, and keeps it for Recall. asked reports
// whether the store was read. The caller must call Project first.
func (c *Client) Learn(ctx context.Context, r artifact.Release) (asked bool, err error) {
	role := c.set.Targets[r.Project]
	if role == nil || c.file(r.Project, TargetPath(r.Project, r.Version, r.Format)) != nil {
		return false, nil
	}
	p, err := c.page(ctx, role, r)
	return p != nil, err
}

// CompleteDigest completes the digest of a release of which only the start is known, with the digest that the store
// signs. It returns r unchanged if no signed digest has that start. The caller must call Learn first.
func (c *Client) CompleteDigest(r artifact.Release) artifact.Release {
	file := c.file(r.Project, TargetPath(r.Project, r.Version, r.Format))
	if file == nil || len(file.Hashes["sha256"]) != 32 {
		return r
	}
	if digest := artifact.NewDigest([32]byte(file.Hashes["sha256"])); r.Digest.Part() &&
		digest.Short() == r.Digest.Short() {
		r.Digest, r.Length = digest, file.Length
	}
	return r
}

// page returns the page of a release; nil for a role without pages.
func (c *Client) page(ctx context.Context, role *Role, r artifact.Release) (*page, error) {
	digests, err := pageDigests(role)
	if err != nil || len(digests) == 0 {
		return nil, err
	}
	i := pageOf(r.Version, len(digests))
	if digests[i] == "" {
		return nil, nil
	}
	data, err := c.pageData(ctx, r.Project, digests[i])
	if err != nil {
		return nil, err
	}
	p, err := parsePage(data, i, len(digests))
	if err != nil {
		return nil, malformed(PageKey(r.Project, digests[i]), err)
	}
	return p, nil
}

// file returns the signed target of a project, if this client or this host has seen it.
func (c *Client) file(project, target string) *tuf.TargetFiles {
	role := c.set.Targets[project]
	if role == nil {
		return nil
	}
	if file := role.Signed.Targets[target]; file != nil {
		return file
	}
	if file := c.known[project][target]; file != nil {
		return file
	}
	return c.seenPage(project, role, target)
}

// seenPage returns a target from its page, if the page was kept from an earlier run.
func (c *Client) seenPage(project string, role *Role, target string) *tuf.TargetFiles {
	digests, err := pageDigests(role)
	if err != nil || len(digests) == 0 {
		return nil
	}
	i := pageOf(versionOf(target), len(digests))
	data := c.seen.page(project, digests[i])
	if data == nil {
		return nil
	}
	p, err := parsePage(data, i, len(digests))
	if err != nil {
		return nil
	}
	return p.Targets[target]
}

// extend adds the signed targets of a project that are not in its head.
func (c *Client) extend(project string, targets map[string]*tuf.TargetFiles) {
	if c.known == nil {
		c.known = map[string]map[string]*tuf.TargetFiles{}
	}
	c.known[project] = targets
}

// KeptPage returns a page that this client has kept; nil if it has not.
func (c *Client) KeptPage(project string, digest artifact.Digest) []byte {
	return c.seen.page(project, digest)
}

// PagesSuffix ends the name of each directory in which the pages of a project are kept, below projects. They can be
// read from the store again.
const PagesSuffix = "~pages"

// pagesDir returns the directory in which the pages of a project are kept.
func (s seen) pagesDir(project string) string {
	return filepath.Join(s.dir, "projects", project+PagesSuffix)
}

func (s seen) pageFile(project string, digest artifact.Digest) string {
	return filepath.Join(s.pagesDir(project), digest.Hex()+".json")
}

// page returns a kept page; nil if there is none or it was damaged since.
func (s seen) page(project string, digest artifact.Digest) []byte {
	if digest == "" || s.memory {
		return nil
	}
	data, err := walk.ReadFile(s.pageFile(project, digest))
	if err != nil || digestOf(data) != digest {
		return nil
	}
	return data
}

// keepPage keeps a page. It is not synced: a page that a power failure damages is read from the store again. A
// directory in its place is removed.
func (s seen) keepPage(ctx context.Context, project string, digest artifact.Digest, data []byte) error {
	if s.memory {
		return nil
	}
	if err := durable.MkdirAll(s.pagesDir(project), 0o700); err != nil {
		return fmt.Errorf("keeping a page of %s: %w", project, err)
	}
	path := s.pageFile(project, digest)
	err := os.WriteFile(path, data, 0o600)
	if errors.Is(err, syscall.EISDIR) {
		if err = durable.RemoveAll(ctx, path); err == nil {
			err = os.WriteFile(path, data, 0o600)
		}
	}
	if err != nil {
		return fmt.Errorf("keeping a page of %s: %w", project, err)
	}
	return nil
}

// keepPages removes the pages that the head no longer names, and all other files beside them.
func (s seen) keepPages(ctx context.Context, project string, named []artifact.Digest) error {
	if s.memory {
		return nil
	}
	entries, err := os.ReadDir(s.pagesDir(project))
	if err != nil {
		return nil // nothing was kept; a directory that cannot be listed only wastes disk space
	}
	keep := map[string]bool{}
	for _, digest := range named {
		keep[filepath.Base(s.pageFile(project, digest))] = true
	}
	for _, e := range entries {
		if !keep[e.Name()] {
			if err := durable.RemoveAll(ctx, filepath.Join(s.pagesDir(project), e.Name())); err != nil {
				return fmt.Errorf("removing a page of %s: %w", project, err)
			}
		}
	}
	return nil
}
