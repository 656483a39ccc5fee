// Package collect removes objects that the signed metadata of a store no longer needs: garbage (`corpus gc`), and old
// versions (`corpus gc --keep`).
package collect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/chunk"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/blobs"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Collected counts the removed objects, or in a dry run those that would be removed. The fields of the first block
// count packs, except for Bytes, which adds up packs, objects and pages.
type Collected struct {
	Packs   int   `json:"packs"` // removed
	Bytes   int64 `json:"bytes"`
	Young   int   `json:"young"`   // unreferenced, and kept because a publisher may be about to sign them
	Pending int   `json:"pending"` // named by a draft that is not yet signed
	Kept    int   `json:"kept"`    // referenced

	Objects Tally `json:"objects"` // artifacts and sidecars
	Pages   Tally `json:"pages"`   // parts of the lists of projects' versions
	Uploads Tally `json:"uploads"` // unfinished uploads
}

// Tally counts objects of one kind by the decision about them.
type Tally struct {
	Removed int `json:"removed"`
	Young   int `json:"young"`
	Pending int `json:"pending"`
	Kept    int `json:"kept"`
}

// Grace has the age at which an unreferenced object is removed.
type Grace struct {
	Packs  time.Duration // age of packs, objects and uploads; longer than any publish takes
	Drafts time.Duration // age of a draft; longer than signing takes
}

// Garbage removes packs of chunks, artifacts, sidecars, and pages of lists of versions that are older than the grace
// period, and that neither the project's signed metadata nor an unsigned draft names. It aborts unfinished uploads of
// that age.
//
// A publisher that works at the same time loses nothing. Its new objects are too young to be removed. It checks the
// packs of earlier versions that it uses again in the change that signs them, and the other objects after that change.
//
// Objects of withdrawn versions stay, since a withdrawal can be undone. If any metadata of a project cannot be read, or
// if the project has none, none of its objects are removed. A dry run removes nothing.
func Garbage(ctx context.Context, p *publish.Publisher, grace Grace, dry bool) (Collected, error) {
	var all Collected
	n, err := p.Read(ctx)
	if err != nil {
		return all, err
	}
	c := &collection{Publisher: p, grace: grace, dry: dry, all: &all}
	var damaged []error // projects that cannot be read do not keep the others from being collected
	for _, project := range n.Client.Projects() {
		err := c.collect(ctx, project)
		if err == nil {
			continue
		}
		err = fmt.Errorf("collecting garbage of %s: %w", project, err)
		if !trust.OfOne(err) {
			return all, err
		}
		damaged = append(damaged, err)
	}
	return all, errors.Join(append(damaged, c.uploads(ctx))...)
}

// collection is one run of Garbage.
type collection struct {
	*publish.Publisher
	grace Grace
	dry   bool
	all   *Collected
}

// collect lists the objects before it reads the signed metadata. In the other order, a publisher might sign an object
// between the two: a draft might be imported, and its note removed by another collection, so that the object would seem
// to be unreferenced.
func (c *collection) collect(ctx context.Context, project string) error {
	there, err := blobs.List(ctx, c.Store, "deploy/"+project+"/")
	if err != nil {
		return err
	}
	pages, err := c.pages(ctx, project)
	if err != nil {
		return err
	}
	used, etag, lost := c.used(ctx, project)
	if !onlyLostIndex(lost) || used == nil {
		return lost
	}
	pending, err := pending(ctx, c.Publisher, project, there, used, c.grace.Drafts, c.dry)
	if err != nil {
		return err
	}
	if lost == nil {
		if err := c.packs(ctx, there.Packs, used, pending); err != nil {
			return err
		}
	}
	if err := c.objects(ctx, project, there.Objects, used, pending, etag, &c.all.Objects); err != nil {
		return err
	}
	return errors.Join(lost, c.objects(ctx, project, pages, used, nil, etag, &c.all.Pages))
}

// used returns the keys of the objects that a project's signed metadata names, and the ETag of the timestamp with which
// it was read. used is nil for a project without signed metadata, which never published or has lost it.
func (c *collection) used(ctx context.Context, project string) (used map[string]bool, etag string, err error) {
	n, err := c.Read(ctx)
	if err != nil {
		return nil, "", err
	}
	used, err = referenced(ctx, n, project)
	return used, n.ETag, err
}

func (c *collection) packs(ctx context.Context, packs []store.Info, used, pending map[string]bool) error {
	tally := Tally{}
	for _, info := range packs {
		count := c.judge(info, used, pending, &tally)
		*count++
		if count != &tally.Removed {
			continue
		}
		if err := c.remove(ctx, info); err != nil {
			return err
		}
	}
	c.all.Packs, c.all.Young = c.all.Packs+tally.Removed, c.all.Young+tally.Young
	c.all.Pending, c.all.Kept = c.all.Pending+tally.Pending, c.all.Kept+tally.Kept
	return nil
}

// objects removes artifacts, sidecars or pages. Their names are digests, so a publisher may sign an object that an
// earlier attempt left. Therefore the signed metadata is read again before a removal if the timestamp has changed, and
// publishers check that their objects exist after they have signed them.
func (c *collection) objects(ctx context.Context, project string, objects []store.Info, used, pending map[string]bool,
	etag string, tally *Tally) error {
	for _, info := range objects {
		count := c.judge(info, used, pending, tally)
		if count == &tally.Removed {
			now, err := c.TimestampETag(ctx)
			if err == nil && now != etag {
				used, etag, err = c.used(ctx, project)
			}
			if !onlyLostIndex(err) || used == nil {
				return err
			}
			count = c.judge(info, used, pending, tally)
		}
		*count++
		if count != &tally.Removed {
			continue
		}
		if err := c.remove(ctx, info); err != nil {
			return err
		}
	}
	return nil
}

// judge returns the counter of a tally that an object belongs to.
func (c *collection) judge(info store.Info, used, pending map[string]bool, tally *Tally) *int {
	switch {
	case used[info.Key]:
		return &tally.Kept
	case pending[info.Key]:
		return &tally.Pending
	case c.young(info.Modified):
		return &tally.Young
	}
	return &tally.Removed
}

// young reports whether an object that was written at this time is within the grace period, so that a publisher may be
// about to sign it.
func (c *collection) young(at time.Time) bool { return at.IsZero() || c.Time().Sub(at) < c.grace.Packs }

func (c *collection) remove(ctx context.Context, info store.Info) error {
	c.all.Bytes += info.Size
	if c.dry {
		return nil
	}
	return c.Store.Delete(ctx, info.Key)
}

// uploads aborts old unfinished uploads. If the credentials may not list uploads, it does nothing.
func (c *collection) uploads(ctx context.Context) error {
	uploads := store.Uploads(c.Store)
	if uploads == nil {
		return nil
	}
	unfinished, err := uploads.Unfinished(ctx, "deploy/")
	if errors.Is(err, store.ErrForbidden) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing unfinished uploads: %w", err)
	}
	return c.abortOld(ctx, uploads, unfinished)
}

// abortOld aborts the uploads that were begun before the grace period or whose writers have ended, and counts them.
func (c *collection) abortOld(ctx context.Context, uploads store.Uploader, unfinished []store.Unfinished) error {
	for _, u := range unfinished {
		if !u.Dead && c.young(u.Begun) {
			c.all.Uploads.Young++
			continue
		}
		if !c.dry {
			if err := uploads.Abort(ctx, u); err != nil {
				return fmt.Errorf("aborting an unfinished upload: %w", err)
			}
		}
		c.all.Uploads.Removed++
	}
	return nil
}

// lostIndex is the error for a version whose index of chunks is lost or damaged: which packs it needs is unknown.
type lostIndex struct {
	release artifact.Release
	err     error
}

// onlyLostIndex reports whether an error is a *lostIndex, or nil.
func onlyLostIndex(err error) bool {
	var lost *lostIndex
	return err == nil || errors.As(err, &lost)
}

func (l *lostIndex) Error() string {
	return fmt.Sprintf("no packs were removed, since the index of the chunks of %s cannot be read: %v", l.release, l.err)
}

func (l *lostIndex) Unwrap() error { return l.err }

// Hint returns what restores the index.
func (l *lostIndex) Hint() string {
	return diag.StoreLost.Coded(fmt.Sprintf("`corpus publish` of the same file as %s %s uploads it again, and "+
		"`corpus verify` names all that is lost; the other objects were collected", l.release.Project, l.release.Version))
}

// referenced returns the keys of all objects and packs that a project's signed metadata names, and nil for a project
// without signed metadata. If an index is lost, the error is a *lostIndex.
func referenced(ctx context.Context, n *publish.Next, project string) (map[string]bool, error) {
	role, err := n.Client.Whole(ctx, project)
	if errors.Is(err, trust.ErrNoProject) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	var lost error
	pages, err := trust.Pages(n.Client.Trusted().Targets[project])
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		used[trust.PageKey(project, page)] = true
	}
	for _, r := range trust.Releases(project, role) {
		used[trust.ObjectKey(r)] = true
		for _, kind := range trust.Kinds() {
			if _, digest, ok := n.Client.Sidecar(r, kind); ok {
				used[trust.SidecarKey(r, kind, digest)] = true
			}
		}
		index, err := blobs.FetchIndex(ctx, n.Client, r)
		switch {
		case errors.Is(err, trust.ErrNoSidecar):
			continue
		case err != nil && trust.OfOne(err):
			lost = cmp.Or(lost, error(&lostIndex{r, err}))
			continue
		case err != nil:
			return nil, err
		}
		for _, pack := range index.Packs {
			used[chunk.PackKey(project, pack)] = true
		}
	}
	return used, lost
}

// CheckClock returns an error if the ages of objects cannot be right, since by the local clock the signature of the
// store's timestamp has expired. Stores on servers tell the time; for a directory, this is how a clock years ahead is
// noticed.
func CheckClock(ctx context.Context, p *publish.Publisher) error {
	n, err := p.Read(ctx)
	if err != nil {
		return err
	}
	timestamp := n.Client.Trusted().Timestamp
	if timestamp == nil || p.Time().Before(timestamp.Signed.Expires) {
		return nil
	}
	return diag.Clock.Hint(&trust.Refused{Check: trust.CheckClock, Of: "to remove anything", Err: fmt.Errorf(
		"by the clock of this machine (%s), the signature of the timestamp expired on %s, so ages of objects may be wrong",
		p.Time().UTC().Format(time.RFC3339), timestamp.Signed.Expires.UTC().Format(time.RFC3339))},
		"set the clock (timedatectl set-ntp true); if it is right, sign the timestamp again first: corpus refresh")
}
