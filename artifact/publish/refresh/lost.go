package refresh

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// named is a file that hosts read, as signed metadata describes it.
type named struct {
	role, key string
	verify    func(data []byte) error
}

// lost returns the roles and pages whose files the store has lost, or of which it has other bytes than were signed.
// This publisher may still have copies of them, but a new host has none. torn reports this for the snapshot, which is
// signed again. The store is listed once, and each file that hosts read is read once: the snapshot, targets, and of
// each project the head, the whole list and the pages. If the publisher may not list the store, lost returns none.
func lost(ctx context.Context, n *publish.Next) (list []Standing, torn bool, err error) {
	there, err := n.Publisher.Versions(ctx)
	if errors.Is(err, store.ErrForbidden) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	list, files := described(n, there)
	damaged, err := readAll(ctx, n.Publisher.Store, files)
	list = append(list, damaged...)
	isSnapshot := func(s Standing) bool { return s.Role == tuf.RoleSnapshot }
	torn = slices.ContainsFunc(list, isSnapshot)
	return slices.DeleteFunc(list, isSnapshot), torn, err
}

// described returns the files that hosts read, and the roles of those whose version is not in the store.
func described(n *publish.Next, there map[string][]int64) (list []Standing, files []named) {
	set := n.Client.Trusted()
	meta := maps.Clone(set.Snapshot.Signed.Meta)
	maps.Copy(meta, set.Timestamp.Signed.Meta)
	for _, name := range slices.Sorted(maps.Keys(meta)) {
		role := strings.TrimSuffix(name, trust.MetaName(""))
		project, _ := trust.IsHead(role)
		switch {
		case n.Roles[project] != nil: // roles that are signed now are written anyway
		case !slices.Contains(there[role], meta[name].Version):
			list = append(list, gone(role))
		default:
			if over, err := n.Client.Over(project); err == nil && !over && readByHosts(n, project) {
				files = append(files, named{role: role, key: trust.RoleKey(role, meta[name].Version),
					verify: meta[name].VerifyLengthHashes})
			}
		}
	}
	for _, project := range n.Client.Projects() {
		files = append(files, pagesOf(n, project)...)
	}
	return list, files
}

// readByHosts reports whether hosts read the files of a role: not those of a project that was removed.
func readByHosts(n *publish.Next, role string) bool {
	return role == tuf.RoleSnapshot || role == tuf.RoleTargets || slices.Contains(n.Client.Projects(), role)
}

// pagesOf returns the pages of a project that its head names; none if the head could not be read.
func pagesOf(n *publish.Next, project string) (files []named) {
	head := n.Client.Trusted().Targets[project]
	if head == nil {
		return nil
	}
	digests, err := trust.Pages(head)
	if err != nil {
		return nil // the head says nothing about them, and is refused
	}
	for _, digest := range digests {
		key := trust.PageKey(project, digest)
		files = append(files, named{key, key, func(data []byte) error {
			if got := artifact.NewDigest(sha256.Sum256(data)); got != digest {
				return fmt.Errorf("its digest is %s, and %s was signed", got, digest)
			}
			return nil
		}})
	}
	return files
}

// readAll reads files, several concurrently, and returns those that the store has lost or damaged, sorted.
func readAll(ctx context.Context, s store.Store, files []named) (list []Standing, err error) {
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(publish.PageWriters)
	var mu sync.Mutex
	for _, file := range files {
		group.Go(func() error {
			found, err := file.read(within, s)
			if found.Left {
				mu.Lock()
				defer mu.Unlock()
				list = append(list, found)
			}
			return err
		})
	}
	err = group.Wait()
	structsort.Func(list, func(a, b Standing) int { return strings.Compare(a.Role, b.Role) })
	return list, err
}

// read returns what is wrong with a file in the store; zero if nothing is.
func (f named) read(ctx context.Context, s store.Store) (found Standing, err error) {
	data, err := trust.ReadMetadata(ctx, s, f.key)
	if publish.Unanswered(err) != nil {
		return found, err
	}
	if err == nil {
		if err = f.verify(data); err == nil {
			return found, nil
		}
	}
	found = gone(f.role)
	switch {
	case errors.Is(err, store.ErrForbidden):
		found.Why = fmt.Sprintf("its file cannot be read: %v", err)
	case !errors.Is(err, store.ErrNotFound):
		found.Why = fmt.Sprintf("its file in the store is damaged, and `corpus refresh --rebuild` restores it: %v", err)
	}
	return found, nil
}

func gone(role string) Standing {
	return Standing{Role: role, Left: true,
		Why: "the store has lost its file, which `corpus refresh --rebuild` puts back"}
}
