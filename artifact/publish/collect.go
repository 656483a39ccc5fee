package publish

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/chunk"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// Collected is what was, or would be, removed. The numbers beside Objects, Pages and Uploads are of packs;
// Bytes is of packs, objects and pages.
type Collected struct {
	Packs   int   `json:"packs"` // removed
	Bytes   int64 `json:"bytes"`
	Young   int   `json:"young"`   // unreferenced, and left alone since a publisher may be about to sign them
	Pending int   `json:"pending"` // named by a draft that is not signed yet
	Kept    int   `json:"kept"`    // referenced

	Objects Tally `json:"objects"` // artifacts, and what lies beside them
	Pages   Tally `json:"pages"`   // parts of the list of a project's versions
	Uploads Tally `json:"uploads"` // unfinished uploads
}

// Tally counts what was looked at.
type Tally struct {
	Removed int `json:"removed"`
	Young   int `json:"young"`
	Pending int `json:"pending"`
	Kept    int `json:"kept"`
}

// Grace is how long what no index names is left alone.
type Grace struct {
	Packs  time.Duration // and objects and uploads, since they were written or begun: longer than any publish takes
	Drafts time.Duration // since a draft was written that names it: longer than signing takes
}

// Collect removes what a project's signed metadata does not name, and no draft that is still to be
// signed, and what is older than the grace: packs of chunks, artifacts, what lies beside them, and
// pages of the list of its versions. It aborts unfinished uploads of that age. A publisher that is at work meanwhile loses nothing: what it
// uploaded is young, the packs that it uses again of earlier versions it checks in the very change that
// signs it, and the other objects after that change. What belongs to withdrawn versions stays, since a
// withdrawal can be taken back. Where anything cannot be read nothing of the project is removed, and nothing of a
// project that has no signed metadata. With dry nothing is removed at all.
func (p *Publisher) Collect(ctx context.Context, grace Grace, dry bool) (Collected, error) {
	var all Collected
	n, err := p.read(ctx)
	if err != nil {
		return all, err
	}
	c := &collection{Publisher: p, grace: grace, dry: dry, all: &all}
	var damaged []error // of projects that cannot be read, which keep no other one from being collected
	for _, project := range n.client.Projects() {
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

// collection is one run of Collect.
type collection struct {
	*Publisher
	grace Grace
	dry   bool
	all   *Collected
}

// collect lists before it reads what is signed: what is signed between the two is found signed. The
// other way round, a draft might be imported, and its note removed by another collection, between
// reading and listing.
func (c *collection) collect(ctx context.Context, project string) error {
	there, err := c.lying(ctx, "deploy/"+project+"/")
	if err != nil {
		return err
	}
	pages, err := c.pages(ctx, project)
	if err != nil {
		return err
	}
	used, etag, err := c.used(ctx, project)
	if err != nil || used == nil {
		return err
	}
	pending, err := c.pending(ctx, project, there, used, c.grace.Drafts, c.dry)
	if err != nil {
		return err
	}
	if err := c.packs(ctx, there.packs, used, pending); err != nil {
		return err
	}
	if err := c.objects(ctx, project, there.objects, used, pending, etag, &c.all.Objects); err != nil {
		return err
	}
	return c.objects(ctx, project, pages, used, nil, etag, &c.all.Pages)
}

// used is what a project's signed metadata names, and the timestamp by which it was read; nil for a
// project that has none: it may never have published, or it was lost.
func (c *collection) used(ctx context.Context, project string) (used map[string]bool, etag string, err error) {
	n, err := c.read(ctx)
	if err != nil {
		return nil, "", err
	}
	used, err = referenced(ctx, n, project)
	return used, n.etag, err
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

// objects removes artifacts, what lies beside them, or pages. An object's name is that of its content, so a
// publisher may sign one that was left by an earlier attempt. Therefore what is signed is read again
// before each removal for which the timestamp has changed, and publishers look for their objects after
// they have signed them.
func (c *collection) objects(ctx context.Context, project string, objects []store.Info, used, pending map[string]bool, etag string, tally *Tally) error {
	for _, info := range objects {
		count := c.judge(info, used, pending, tally)
		if count == &tally.Removed {
			now, err := c.timestampETag(ctx)
			if err == nil && now != etag {
				used, etag, err = c.used(ctx, project)
			}
			if err != nil || used == nil {
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

// judge gives the number in a tally that an object belongs to.
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

// young reports whether a publisher may be about to sign what was written at a time.
func (c *collection) young(at time.Time) bool { return at.IsZero() || c.now().Sub(at) < c.grace.Packs }

func (c *collection) remove(ctx context.Context, info store.Info) error {
	c.all.Bytes += info.Size
	if c.dry {
		return nil
	}
	return c.Store.Delete(ctx, info.Key)
}

// uploads aborts unfinished uploads. Credentials that may not list them leave them alone.
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
	for _, u := range unfinished {
		if c.young(u.Begun) {
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

// lying is what is in the store of a project.
type lying struct {
	packs, notes []store.Info
	objects      []store.Info // artifacts and what lies beside them
}

// lying lists what is under a prefix. Objects with names that no publisher gives are left out.
func (p *Publisher) lying(ctx context.Context, prefix string) (there lying, err error) {
	for info, err := range p.Store.List(ctx, prefix) {
		switch {
		case err != nil:
			return lying{}, err
		case strings.HasSuffix(info.Key, ".pack") && inChunks(info.Key):
			there.packs = append(there.packs, info)
		case strings.HasSuffix(info.Key, noteSuffix) && inChunks(info.Key):
			there.notes = append(there.notes, info)
		case !inChunks(info.Key) && objectName.MatchString(path.Base(info.Key)):
			there.objects = append(there.objects, info)
		}
	}
	return there, nil
}

func inChunks(key string) bool { return path.Base(path.Dir(key)) == "chunks" }

// objectName is the form of names of artifacts and what lies beside them.
var objectName = regexp.MustCompile(`^[0-9a-f]{64}\..`)

// referenced are the keys of all objects and packs that a project's signed metadata names; nil for a
// project that has none.
func referenced(ctx context.Context, n *next, project string) (map[string]bool, error) {
	role, err := n.client.Whole(ctx, project)
	if errors.Is(err, trust.ErrNoProject) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	pages, err := trust.Pages(n.client.Trusted().Targets[project])
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		used[trust.PageKey(project, page)] = true
	}
	for _, r := range trust.Releases(project, role) {
		used[trust.ObjectKey(r)] = true
		for _, kind := range trust.Kinds() {
			if _, digest, ok := n.client.Sidecar(r, kind); ok {
				used[trust.SidecarKey(r, kind, digest)] = true
			}
		}
		index, err := fetchIndex(ctx, n.client, r)
		if errors.Is(err, trust.ErrNoSidecar) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, pack := range index.Packs {
			used[chunk.PackKey(project, pack)] = true
		}
	}
	return used, nil
}
