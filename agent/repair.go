package agent

import "github.com/corpus-agent/corpus-agent/agent/project"

// repairLinks sets aside what stands in the place of the links of projects that were deployed here, or are about to be. In
// any other directory below /srv/projects a directory of that name may be somebody's.
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
		r.record.Note("%s; a new, empty one is made: bring its content back from a backup", text)
	}
	for _, release := range runs.Releases() {
		if err := project.LayOut(r.LayoutOf(release.Project)); err != nil {
			return err
		}
	}
	return nil
}
