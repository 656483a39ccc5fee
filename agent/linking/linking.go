// Package linking moves the links of a pair of releases: next, current and previous of each project, /srv/base and
// /srv/service. It also compares the links with the ledger, and repairs links that were lost or replaced.
package linking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/agent/project"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/serving"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Run is the part of one run of the agent that moves links. All of its exported fields have to be set.
type Run struct {
	Host    *inspect.Host
	ID      string
	Test    bool // a dry run: no link is moved
	Ledger  *ledger.Ledger
	Record  *report.Builder
	Serving *serving.Run
}

// SetAside renames files and directories in the place of links of projects. It must be called only for deployed
// projects: in other directories below /srv/projects such a directory may belong to a user.
func (r *Run) SetAside(projects []string) error {
	if r.Test {
		return nil
	}
	lost, err := r.Host.SetLinksAside(projects, r.ID)
	for _, text := range lost {
		r.Record.Note("%s", text)
	}
	return err
}

// Link points next and current of base, and next of the service, at the releases of a pair. States are read from there.
func (r *Run) Link(pair ledger.Pair) error {
	for _, release := range pair.Releases() {
		if err := project.LayOut(r.Host.LayoutOf(release.Project)); err != nil {
			return err
		}
	}
	if r.Ledger.Runs() != nil {
		if err := r.clearNames(); err != nil {
			return err
		}
	}
	if pair.Base != nil {
		base := r.Host.LayoutOf(pair.Base.Project)
		links := link.Of(base)
		if err := links.SetNext(pair.Base.Dir()); err != nil {
			return err
		}
		if err := links.SetCurrent(pair.Base.Dir()); err != nil {
			return err
		}
		if err := link.Name(r.Host.Layout.BaseLink(), base); err != nil {
			return err
		}
	}
	if pair.BaseAlone() {
		return nil
	}
	service := r.Host.LayoutOf(pair.Service.Project)
	if r.Host.Alone == "" {
		if err := link.Name(r.Host.Layout.ServiceLink(), service); err != nil {
			return err
		}
	}
	return link.Of(service).SetNext(pair.Service.Dir())
}

// Promote points current at the releases of a pair, and previous at those of the pair that was deployed before. On a
// dev host that stayed on a failed release, and without a deployed pair, previous leads to what was current before. If
// next was changed since Link, Promote corrects it.
func (r *Run) Promote(pair ledger.Pair, before map[string]link.Set) error {
	for _, release := range pair.Releases() {
		links := link.Of(r.Host.LayoutOf(release.Project))
		if now, err := links.Read(); err == nil && now.Next != release.Dir() {
			if err := links.SetNext(release.Dir()); err != nil {
				return err
			}
			r.Record.Note("next of %s was changed during the run, by another program or a person; it leads to %s again",
				release.Project, release)
		}
		was := before[release.Project]
		if r.Ledger.Failing == nil { // a person may have changed current before the run
			was.Current = cmp.Or(r.goodDir(release.Project), was.Current)
		}
		if err := links.Promote(release.Dir(), was); err != nil {
			return err
		}
	}
	return nil
}

// Before returns the links of a project before a deploy. If current was lost, or leads to no release on the disk,
// Before first points it at the deployed release, which a rollback needs.
func (r *Run) Before(project string) (link.Set, error) {
	links := link.Of(r.Host.LayoutOf(project))
	s, err := links.Read()
	if err != nil {
		return s, fmt.Errorf("reading the links: %w", err)
	}
	there, _ := links.Reachable(s)
	good := r.goodDir(project)
	if there.Current != "" || good == "" {
		return s, nil
	}
	s.Current = good
	return s, links.SetCurrent(good)
}

// Of returns the links of a pair after a rollback to it.
func (r *Run) Of(target ledger.Pair) (map[string]link.Set, error) {
	links := map[string]link.Set{}
	for _, release := range target.Releases() {
		s, err := link.Of(r.Host.LayoutOf(release.Project)).Read()
		if err != nil {
			return nil, fmt.Errorf("reading the links: %w", err)
		}
		if s.Previous == release.Dir() {
			s.Previous = ""
		}
		s.Next, s.Current = release.Dir(), release.Dir()
		links[release.Project] = s
	}
	return links, nil
}

// Restore restores the links of all projects. If the release of a link is not on the disk, the link leads to the
// deployed release or is removed, so that the rollback continues.
func (r *Run) Restore(ctx context.Context, before map[string]link.Set) error {
	defer r.Serving.ResetStartLimits(ctx)
	defer r.Serving.Moved()
	var errs []error
	for project, s := range before {
		there, gone := r.restorable(project, s)
		if len(gone) > 0 {
			r.Record.Note("the releases that %s of %s led to are missing on the disk", strings.Join(gone, " and "), project)
		}
		errs = append(errs, link.Of(r.Host.LayoutOf(project)).Restore(there))
	}
	return errors.Join(errs...)
}

// restorable returns the links that Restore makes of those from before a deploy, and the names of those whose releases
// are not on the disk.
func (r *Run) restorable(project string, s link.Set) (there link.Set, gone []string) {
	there, gone = link.Of(r.Host.LayoutOf(project)).Reachable(s)
	// A link may have been lost before the deploy, as where a directory stood in its place.
	there.Current = cmp.Or(there.Current, r.goodDir(project))
	there.Next = cmp.Or(there.Next, there.Current)
	return there, gone
}

// PointPrevious points the link previous of each project at the previous release in the ledger, after a rollback by
// hand.
func (r *Run) PointPrevious(pair ledger.Pair) {
	for _, release := range pair.Releases() {
		links := link.Of(r.Host.LayoutOf(release.Project))
		now, err := links.Read()
		if err == nil && now.Previous != r.PreviousDir(release) {
			now.Previous = r.PreviousDir(release)
			err = links.Restore(now)
		}
		if err != nil {
			r.Record.Note("the link previous of %s does not agree with the ledger: %v", release.Project, err)
		}
	}
}

// clearNames renames files in the place of the links /srv/base and /srv/service. It is called on hosts with a deployed
// release, which had links there; on a new host such a directory belongs to a user.
func (r *Run) clearNames() error {
	names := []string{r.Host.Layout.BaseLink(), r.Host.Layout.ServiceLink()}
	if r.Host.Alone != "" {
		names = nil
	}
	for _, path := range names {
		info, err := os.Lstat(path)
		if found, err := walk.Found(err); err != nil {
			return err
		} else if !found || info.Mode()&os.ModeSymlink != 0 {
			continue
		}
		aside := path + layout.DamagedMark + r.ID
		if err := durable.Rename(path, aside); err != nil {
			return fmt.Errorf("setting aside %s, which is not a link: %w", r.Host.Layout.Inside(path), err)
		}
		r.Record.Note("%s was not a link; it was set aside as %s", r.Host.Layout.Inside(path), filepath.Base(aside))
	}
	return nil
}
