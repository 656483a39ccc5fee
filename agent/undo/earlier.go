package undo

import (
	"path"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/image"
)

// earlier finds the records of earlier deploys of the pair to leave, oldest first. A plain rollback takes nothing
// back, so what such a deploy changed is still there, in a chapter before the one of the pair to come to.
//
// What another pair changed in between stays, since it is not the pair's to leave. Only where the pair to leave had
// changed the same thing before is the change of the other pair taken back as well: without it the older change
// would look as if somebody had overwritten it.
func earlier(chapters []*journal.Chapter, s Scope) (records []*journal.Record) {
	touched := map[aspect]bool{}
	for _, c := range chapters[since(chapters, s.To):] {
		own := c.Pair == s.From
		for _, r := range c.Live() {
			parts := partsOf(r)
			switch {
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

// since is the first chapter that may be of a deploy over the pair of the given key: no chapter before it shows that
// this pair had ever converged.
func since(chapters []*journal.Chapter, to string) int {
	for i, c := range chapters {
		if c.Over == to || c.Pair == to {
			return i
		}
	}
	return len(chapters)
}

// aspect names one thing that a record changed: a path, or an aspect of a subject that is no path.
type aspect struct {
	kind host.Kind
	name string
	of   string
}

// partsOf lists what a record changed; nothing for what was not recorded, as what a program did.
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
