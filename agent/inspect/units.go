package inspect

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/service"
)

// ServiceProjects returns the projects of a pair for package service. linked has the times at which their links were
// moved.
func (h *Host) ServiceProjects(pair ledger.Pair, linked map[string]ledger.Linked) ([]service.Project, error) {
	var projects []service.Project
	for _, release := range slices.Backward(pair.Releases()) { // a unit that both name is the service's
		p := h.LayoutOf(release.Project)
		says, err := h.Recipe(release)
		if err != nil {
			return nil, fmt.Errorf("reading which units %s has: %w", release, err)
		}
		projects = append(projects, service.Project{
			Name: release.Project, Version: release.Version, Dir: p.Dir, Release: release.Dir(),
			Links: h.linksTo(release.Project),
			Units: says.Units, Reload: says.Reload, Current: CurrentOf(p),
			Linked: h.linkedAt(p, linked[p.Name]), LinkedClock: h.linkedClock(p, linked[p.Name]),
		})
	}
	slices.Reverse(projects)
	return projects, nil
}

// linksTo returns the paths by which units name the current or next release of a project.
func (h *Host) linksTo(project string) []string {
	dirs := []string{h.LayoutOf(project).Dir}
	for _, l := range []string{h.Layout.ServiceLink(), h.Layout.BaseLink()} {
		if to, err := os.Readlink(l); err == nil && filepath.Base(to) == project {
			dirs = append([]string{l}, dirs...)
		}
	}
	if real, err := filepath.EvalSymlinks(h.LayoutOf(project).Dir); err == nil {
		dirs = append(dirs, real)
	}
	var links []string
	for _, dir := range dirs {
		for _, name := range []string{"current", "next", "project"} {
			links = append(links, filepath.Join(h.Layout.Inside(dir), name))
		}
	}
	slices.Sort(links[min(1, len(links)):])
	return slices.Compact(links)
}

// RunningUnits sets the units of the deployed pair with their programs in status, and adds a drift for each program
// that is not of a deployed release. It adds nothing if the units are not those of this host.
func (h *Host) RunningUnits(ctx context.Context, status *Status) error {
	s, err := h.System()
	if err != nil || s.Allowed() != nil || status.runs() == nil || status.Running != nil {
		return err
	}
	pair := *status.runs()
	if status.Failing != nil {
		pair = *status.Failing
	}
	projects, err := h.ServiceProjects(pair, status.linked)
	if err != nil {
		return err
	}
	members, err := service.Find(ctx, s, projects)
	if err != nil {
		return err
	}
	if status.Units, err = service.See(ctx, s, members); err != nil {
		return err
	}
	status.noteDrift()
	return nil
}

// noteDrift adds the units whose programs are not those of the deployed release.
func (s *Status) noteDrift() {
	for _, u := range s.Units {
		if !u.Deployed {
			s.Drift = append(s.Drift, fmt.Sprintf("%s runs %s", u.Unit, orBefore(u.Release)))
		}
	}
}

func orBefore(release string) string {
	if release == "" {
		return "what current led to before it moved last, and was not restarted since"
	}
	return release + ", which is not deployed"
}

// CurrentOf returns the name of the directory that current of a project leads to; "" if there is no such link.
func CurrentOf(p layout.Project) string {
	target, err := os.Readlink(filepath.Join(p.Dir, "current"))
	if err != nil {
		return ""
	}
	return filepath.Base(target)
}

// linkedAt is LinkedAt, but returns zero for a time in the future, which means that the clock was set back since.
func (h *Host) linkedAt(p layout.Project, known ledger.Linked) time.Time {
	at := LinkedAt(p, known)
	if at.After(h.Time()) {
		return time.Time{}
	}
	return at
}

// linkedClock returns the time at which current of a project was last moved, on the clock of units; 0 for an earlier
// boot, and nil if the ledger does not have it.
func (h *Host) linkedClock(p layout.Project, known ledger.Linked) *time.Duration {
	boot := h.BootID()
	if known.Boot == "" || boot == "" || known.Release != CurrentOf(p) {
		return nil
	}
	if known.Boot != boot {
		known.Clock = 0
	}
	return &known.Clock
}

// LinkedAt returns the time at which current of a project was last moved, by the ledger, or else by the modification
// time of the link.
func LinkedAt(p layout.Project, known ledger.Linked) time.Time {
	if known.Release != "" && known.Release == CurrentOf(p) {
		return known.At
	}
	info, err := os.Lstat(filepath.Join(p.Dir, "current"))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
