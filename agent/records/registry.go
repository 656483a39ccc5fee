package records

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

// Entry returns the registry's entry of a project; nil if there is none. If the entry is missing or cannot be read,
// Entry returns its copy, and notes say so. With repair, for which the caller must hold the lock, it restores the entry
// and keeps an unreadable one under another name; without a copy it creates the entry from what is on the disk. Without
// repair and without a copy, the error of an unreadable entry is a *ledger.Corrupt.
func (rs *Records) Entry(project string, repair bool) (entry *ledger.Project, notes []string, err error) {
	path := rs.Layout.Registry(project)
	entry, err = ledger.LoadProject(path)
	var corrupt *ledger.Corrupt
	damaged := errors.As(err, &corrupt)
	switch {
	case err != nil && !damaged:
		return nil, nil, err
	case entry != nil:
		if repair {
			notes = rs.refreshEntryCopy(entry)
		}
		return entry, notes, nil
	}
	entry, copyErr := ledger.LoadProject(rs.Layout.RegistryCopy(project))
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
		aside := strings.TrimSuffix(path, ".json") + ".corrupt-" + report.NewID(rs.Time()) + ".json"
		if err := durable.Rename(path, aside); err != nil {
			return nil, nil, fmt.Errorf("keeping the registry's entry aside: %w", err)
		}
		what += "; it is kept as " + rs.Layout.Inside(aside)
	}
	if lost {
		entry, err := rs.EntryFromDisk(project)
		return entry, []string{what + " and was made again without the settings of set-configuration: set them again"}, err
	}
	if !repair {
		return entry, nil, nil
	}
	return entry, []string{what + " and was restored from its copy"}, entry.Save(path)
}

// EntryFromDisk returns the entry of a project as far as it can be derived from its directory.
func (rs *Records) EntryFromDisk(project string) (*ledger.Project, error) {
	entry := &ledger.Project{Name: project, User: UserName(project), Group: UserName(project)}
	hasGit, err := walk.Exists(rs.LayoutOf(project).Git("project"))
	if hasGit {
		entry.Branch = DefaultBranch
	}
	return entry, err
}

// SaveEntry writes an entry and its copy.
func (rs *Records) SaveEntry(entry *ledger.Project) error {
	found, err := walk.Exists(rs.Layout.Projects())
	if err != nil {
		return err
	}
	if found && entry.Save(rs.Layout.RegistryCopy(entry.Name)) != nil {
		_ = durable.Remove(rs.Layout.RegistryCopy(entry.Name)) // it is outdated; the next run writes it again
	}
	return entry.Save(rs.Layout.Registry(entry.Name))
}

// refreshEntryCopy writes the copy of the entry again if it differs.
func (rs *Records) refreshEntryCopy(entry *ledger.Project) []string {
	want, written, err := walk.Read(rs.Layout.Registry(entry.Name))
	path := rs.Layout.RegistryCopy(entry.Name)
	if have, _, unread := walk.Read(path); unread == nil && bytes.Equal(have, want) {
		return nil
	}
	found, lost := walk.Exists(rs.Layout.Projects())
	if err = errors.Join(err, lost); err == nil && written && found {
		err = durable.WriteFile(path, want, 0o600)
	}
	if err != nil {
		return []string{fmt.Sprintf("the registry's entry of %s has no copy: %v", entry.Name, err)}
	}
	return nil
}

// Registered reports whether a project has an entry or a copy of one.
func (rs *Records) Registered(project string) (bool, error) {
	for _, path := range []string{rs.Layout.Registry(project), rs.Layout.RegistryCopy(project)} {
		if found, err := walk.Exists(path); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// UserName returns the account name of a project. Account names are shorter and have fewer characters than names of
// projects.
func UserName(project string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, project)
	const suffix, longest = "-user", 32
	name = name[:min(len(name), longest-len(suffix))] + suffix
	if name[0] >= '0' && name[0] <= '9' {
		name = "p" + name[:len(name)-len(suffix)-1] + suffix
	}
	return name
}

// DefaultBranch is the branch that is deployed by default when it is pushed.
const DefaultBranch = "main"
