package undo

import (
	"path"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/image"
)

// earlier returns the records of earlier deploys of the pair s.From, oldest first. A rollback without --converge does
// not restore anything, so the changes of such a deploy remain, in a chapter before the chapters of s.To.
//
// The changes of other pairs in between stay. The exception is a change of something that s.From had changed before: it
// is undone too, because otherwise the older change would seem to have been overwritten by another program.
func earlier(chapters []*journal.Chapter, s Scope, order map[string]int) (records []*journal.Record) {
	touched, named := map[aspect]bool{}, since(chapters, s.To)
	for i, c := range chapters {
		own := c.Key().Same(s.From)
		for _, r := range c.Live() {
			parts := partsOf(r)
			switch {
			case i < named && (s.First == "" || !s.after(r.Run, s.First, order)):
				continue // older than s.To
			case own:
				for _, p := range parts {
					touched[p] = true
				}
			case !slices.ContainsFunc(parts, func(p aspect) bool { return touched[p] }):
				continue
			}
			records = append(records, r)
		}
	}
	return records
}

// since returns the index of the first chapter that names the pair with key to. In no chapter before it has that pair
// converged or been replaced.
func since(chapters []*journal.Chapter, to ledger.Key) int {
	for i, c := range chapters {
		if c.OverKey().Same(to) || c.Key().Same(to) {
			return i
		}
	}
	return len(chapters)
}

// aspect identifies one thing that a record changed: a path, or a part of a subject that is not a path.
type aspect struct {
	kind host.Kind
	name string
	of   string
}

// partsOf returns what a record changed. It returns nil if that was not recorded, as for programs.
func partsOf(r *journal.Record) (parts []aspect) {
	if r.Before == nil {
		return nil
	}
	images := []image.Image{*r.Before}
	if r.After != nil {
		images = append(images, *r.After)
	}
	for _, name := range image.Names(images...) {
		p := aspect{r.Subject.Kind, r.Subject.Name, name}
		if s := r.Subject.Kind; path.IsAbs(name) && s != host.KindUser && s != host.KindGroup {
			p = aspect{host.KindFile, name, name}
		}
		if p.kind == host.KindBoot {
			p.kind = host.KindUnit
		}
		parts = append(parts, p)
	}
	return parts
}
