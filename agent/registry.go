package agent

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// entryOf is the registry's entry of a project; nil where it has none. An entry that is gone or cannot be
// read comes from its copy, and notes say so. With repair, for which the caller holds the lock, it is put
// back; one that cannot be read is kept aside, and without a copy made again of what is on the disk. Without
// repair that is a *ledger.Corrupt.
func (a *Agent) entryOf(project string, repair bool) (entry *ledger.Project, notes []string, err error) {
	path := a.Layout.Registry(project)
	entry, err = ledger.LoadProject(path)
	var corrupt *ledger.Corrupt
	damaged := errors.As(err, &corrupt)
	switch {
	case err != nil && !damaged:
		return nil, nil, err
	case entry != nil:
		if repair {
			notes = a.refreshEntryCopy(entry)
		}
		return entry, notes, nil
	}
	entry, copyErr := ledger.LoadProject(a.Layout.RegistryCopy(project))
	if !damaged && entry == nil && copyErr == nil {
		return nil, nil, nil // a project that is not registered, or lost both
	}
	lost := copyErr != nil || entry == nil
	if lost && !repair {
		return nil, nil, err
	}
	what := fmt.Sprintf("the registry's entry of %s was gone", project)
	if damaged {
		what = fmt.Sprintf("the registry's entry of %s could not be read (%v)", project, corrupt.Err)
	}
	if damaged && repair {
		aside := strings.TrimSuffix(path, ".json") + ".corrupt-" + report.NewID(a.Time()) + ".json"
		if err := durable.Rename(path, aside); err != nil {
			return nil, nil, fmt.Errorf("keeping the registry's entry aside: %w", err)
		}
		what += "; it is kept as " + a.Layout.Inside(aside)
	}
	if lost {
		entry, err := a.entryFromDisk(project)
		return entry, []string{what + " and was made again without the settings of set-configuration: set them again"}, err
	}
	if !repair {
		return entry, nil, nil
	}
	return entry, []string{what + " and was restored from its copy"}, entry.Save(path)
}

// entryFromDisk is the entry of a project as far as its directory tells.
func (a *Agent) entryFromDisk(project string) (*ledger.Project, error) {
	entry := &ledger.Project{Name: project, User: userName(project), Group: userName(project)}
	hasGit, err := walk.Exists(a.LayoutOf(project).Git("project"))
	if hasGit {
		entry.Branch = defaultBranch
	}
	return entry, err
}

// saveEntry writes an entry and its copy.
func (a *Agent) saveEntry(entry *ledger.Project) error {
	found, err := walk.Exists(a.Layout.Projects())
	if err != nil {
		return err
	}
	if found && entry.Save(a.Layout.RegistryCopy(entry.Name)) != nil {
		_ = durable.Remove(a.Layout.RegistryCopy(entry.Name)) // it is out of date; the next run says that there is none
	}
	return entry.Save(a.Layout.Registry(entry.Name))
}

// refreshEntryCopy writes the copy again where it is not what the entry is.
func (a *Agent) refreshEntryCopy(entry *ledger.Project) []string {
	want, written, err := walk.Read(a.Layout.Registry(entry.Name))
	path := a.Layout.RegistryCopy(entry.Name)
	if have, _, unread := walk.Read(path); unread == nil && bytes.Equal(have, want) {
		return nil
	}
	found, lost := walk.Exists(a.Layout.Projects())
	if err = errors.Join(err, lost); err == nil && written && found {
		err = durable.WriteFile(path, want, 0o600)
	}
	if err != nil {
		return []string{fmt.Sprintf("the registry's entry of %s has no copy: %v", entry.Name, err)}
	}
	return nil
}

// registered reports whether a project has an entry, or had one.
func (a *Agent) registered(project string) (bool, error) {
	for _, path := range []string{a.Layout.Registry(project), a.Layout.RegistryCopy(project)} {
		if found, err := walk.Exists(path); found || err != nil {
			return found, err
		}
	}
	return false, nil
}
