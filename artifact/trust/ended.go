package trust

import "fmt"

// endedField is a field of ours in targets, which is signed one level above every project. It maps a project to a version
// of its metadata: files up to that version no longer count, even if they are signed. A snapshot never forgets a
// file, so this is how a project that was removed, and is added again, begins without what it said before.
const endedField = "ended"

// Ended reads from targets up to which version the metadata of projects counts no longer.
func Ended(targets *Role) (map[string]int64, error) { return fieldOf[int64](targets, endedField) }

// End writes into targets, to be signed, that the metadata of a project up to a version counts no longer.
func End(targets *Role, project string, version int64) error {
	all, err := Ended(targets)
	if err != nil {
		return malformed(MetaName(targetsRole), err)
	}
	all[project] = max(all[project], version)
	return setField(targets, endedField, all)
}

// Last is the highest version of a project's metadata that the snapshot names; 0 for a project that never published.
func (c *Client) Last(project string) int64 {
	version := int64(0)
	for _, role := range []string{project, HeadRole(project)} {
		if meta := c.set.Snapshot.Signed.Meta[MetaName(role)]; meta != nil {
			version = max(version, meta.Version)
		}
	}
	return version
}

// Over reports whether all that the snapshot names of a project counts no longer, as targets says.
func (c *Client) Over(project string) (bool, error) {
	targets := c.set.Targets[targetsRole]
	if targets == nil || c.set.Snapshot == nil {
		return false, nil
	}
	ended, err := Ended(targets)
	if err != nil {
		return false, malformed(MetaName(targetsRole), fmt.Errorf("reading which projects have ended: %w", err))
	}
	version, has := ended[project]
	return has && c.Last(project) <= version, nil
}
