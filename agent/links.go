package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/agent/project"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// repairLinks sets aside what is in the place of the links of projects that were deployed here, or are about to be.
// In any other directory below /srv/projects a directory of that name may belong to a user.
func (r *run) repairLinks(projects []string) error {
	if r.test {
		return nil
	}
	lost, err := r.SetLinksAside(projects, r.id)
	for _, text := range lost {
		r.record.Note("%s", text)
	}
	return err
}

// repairData makes data directories of what runs again that are gone, and says so: what was in them does not come back.
func (r *run) repairData() error {
	runs := r.ledger.Runs()
	if runs == nil {
		return nil
	}
	lost, unseen := r.DataLost(*runs)
	for _, text := range unseen {
		r.record.Note("%s", text)
	}
	if len(lost) == 0 {
		return nil
	}
	for _, text := range lost {
		r.record.Note("%s; a new, empty one is created: restore its content from a backup", text)
	}
	for _, release := range runs.Releases() {
		if err := project.LayOut(r.LayoutOf(release.Project)); err != nil {
			return err
		}
	}
	return nil
}

// link points base at its new release and next at the service's. States are read from both.
func (r *run) link(pair ledger.Pair) error {
	for _, release := range pair.Releases() {
		if err := project.LayOut(r.LayoutOf(release.Project)); err != nil {
			return err
		}
	}
	if r.ledger.Runs() != nil {
		if err := r.clearNames(); err != nil {
			return err
		}
	}
	if pair.Base != nil {
		base := r.LayoutOf(pair.Base.Project)
		links := link.Of(base)
		if err := links.SetNext(pair.Base.Dir()); err != nil {
			return err
		}
		if err := links.SetCurrent(pair.Base.Dir()); err != nil {
			return err
		}
		if err := link.Name(r.Layout.BaseLink(), base); err != nil {
			return err
		}
	}
	if pair.BaseAlone() {
		return nil
	}
	service := r.LayoutOf(pair.Service.Project)
	if r.Alone == "" {
		if err := link.Name(r.Layout.ServiceLink(), service); err != nil {
			return err
		}
	}
	return link.Of(service).SetNext(pair.Service.Dir())
}

// promote makes the pair current, and what was current previous. A next that a person removed or moved since states
// began leads to the pair again.
func (r *run) promote(pair ledger.Pair, before map[string]link.Set) error {
	for _, release := range pair.Releases() {
		links := link.Of(r.LayoutOf(release.Project))
		if now, err := links.Read(); err == nil && now.Next != release.Dir() {
			if err := links.SetNext(release.Dir()); err != nil {
				return err
			}
			r.record.Note("next of %s was changed during the run, by another program or a person; it leads to %s again",
				release.Project, release)
		}
		if err := links.Promote(release.Dir(), before[release.Project]); err != nil {
			return err
		}
	}
	return nil
}

// linksBefore are the links of a project before a deploy. A `current` that was lost leads to what the ledger says is
// deployed again: the deploy goes back to that, and `previous` is to name it.
func (r *run) linksBefore(project string) (link.Set, error) {
	links := link.Of(r.LayoutOf(project))
	s, err := links.Read()
	if err != nil {
		return s, fmt.Errorf("reading the links: %w", err)
	}
	runs := r.ledger.Runs()
	if runs == nil || s.Current != "" {
		return s, nil
	}
	for _, release := range runs.Releases() {
		if release.Project == project && r.Held().Has(release) {
			s.Current = release.Dir()
			return s, links.SetCurrent(s.Current)
		}
	}
	return s, nil
}

// linked reports whether the links say what the ledger says.
func (r *run) linked(p ledger.Pair) bool {
	for _, release := range p.Releases() {
		s, err := link.Of(r.LayoutOf(release.Project)).Read()
		if err != nil || s.Current != release.Dir() || s.Next != release.Dir() || !r.Held().Has(release) {
			return false
		}
	}
	return r.Alone != "" || r.namesLead(p)
}

// namesLead reports whether /srv/base and /srv/service lead to the projects of a pair.
func (r *run) namesLead(p ledger.Pair) bool {
	names := map[string]layout.Project{}
	if !p.BaseAlone() {
		names[r.Layout.ServiceLink()] = r.LayoutOf(p.Service.Project)
	}
	if p.Base != nil {
		names[r.Layout.BaseLink()] = r.LayoutOf(p.Base.Project)
	}
	for path, project := range names {
		if target, err := os.Readlink(path); err != nil || target != project.LinkTarget() {
			return false
		}
	}
	return true
}

// inPlace reports whether all links are as a deploy of the pair left them: those that lead to it, and
// `previous`, which leads to a release that is there, or does not exist itself.
func (r *run) inPlace(pair ledger.Pair) bool {
	if !r.linked(pair) {
		return false
	}
	for _, release := range pair.Releases() {
		links := link.Of(r.LayoutOf(release.Project))
		now, err := links.Read()
		if err != nil || !links.Named() {
			return false
		}
		if _, gone := links.Reachable(now); len(gone) > 0 || now.Previous == "" && r.previousDir(release) != "" {
			return false
		}
	}
	return true
}

// clearNames sets aside what is in the place of /srv/base and /srv/service. On a host on which
// nothing was deployed a directory there belongs to a user; here there was a link.
func (r *run) clearNames() error {
	names := []string{r.Layout.BaseLink(), r.Layout.ServiceLink()}
	if r.Alone != "" {
		names = nil
	}
	for _, path := range names {
		info, err := os.Lstat(path)
		if found, err := walk.Found(err); err != nil {
			return err
		} else if !found || info.Mode()&os.ModeSymlink != 0 {
			continue
		}
		aside := path + layout.DamagedMark + r.id
		if err := durable.Rename(path, aside); err != nil {
			return fmt.Errorf("setting aside %s, which is not a link: %w", r.Layout.Inside(path), err)
		}
		r.record.Note("%s was not a link; it was set aside as %s", r.Layout.Inside(path), filepath.Base(aside))
	}
	return nil
}

// restoreLinks puts the links of all projects back. A link whose release is missing on the disk leads to
// what is good instead, or is removed: a release that was deleted must not keep a host from going
// back.
func (r *run) restoreLinks(ctx context.Context, before map[string]link.Set) error {
	defer r.serving.ResetStartLimits(ctx)
	defer r.serving.Moved()
	var errs []error
	for project, s := range before {
		links := link.Of(r.LayoutOf(project))
		there, gone := links.Reachable(s)
		// A link may have been lost before the deploy, as where a directory stood in its place.
		there.Current = cmp.Or(there.Current, r.goodDir(project))
		there.Next = cmp.Or(there.Next, there.Current)
		if len(gone) > 0 {
			r.record.Note("the releases that %s of %s led to are missing on the disk", strings.Join(gone, " and "), project)
		}
		errs = append(errs, links.Restore(there))
	}
	return errors.Join(errs...)
}

// goodDir is the directory of a project's release in the good pair, where that is on the disk, and else "".
func (r *run) goodDir(project string) string {
	runs := r.ledger.Runs()
	if runs == nil {
		return ""
	}
	for _, release := range runs.Releases() {
		if release.Project == project && r.Held().Has(release) {
			return release.Dir()
		}
	}
	return ""
}

// pointPrevious makes the links previous of a pair agree with the ledger, after a person went back from what
// they named.
func (r *run) pointPrevious(pair ledger.Pair) {
	for _, release := range pair.Releases() {
		links := link.Of(r.LayoutOf(release.Project))
		now, err := links.Read()
		if err == nil && now.Previous != r.previousDir(release) {
			now.Previous = r.previousDir(release)
			err = links.Restore(now)
		}
		if err != nil {
			r.record.Note("the link previous of %s does not agree with the ledger: %v", release.Project, err)
		}
	}
}

// previousDir is the directory of a project's release in the previous pair, where that is on the disk and
// another one.
func (r *run) previousDir(release artifact.Release) string {
	if r.ledger.Previous == nil {
		return ""
	}
	for _, before := range r.ledger.Previous.Releases() {
		if before.Project == release.Project && before.Dir() != release.Dir() && r.Held().Has(before) {
			return before.Dir()
		}
	}
	return ""
}
