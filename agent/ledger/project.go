package ledger

import (
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// APIVersion is the version of a project's layout on disk and of what its procedures are given. A
// later one can live beside it, since each project says which is its own.
const APIVersion = 2

// Project is the entry of one project in the registry of a host.
type Project struct {
	APIVersion int    `json:"api_version"`
	Name       string `json:"name"`
	User       string `json:"user,omitempty"` // who owns the project's data
	Group      string `json:"group,omitempty"`
	Env        string `json:"env,omitempty"`    // dev, staging or prod; "" as the instance says
	Branch     string `json:"branch,omitempty"` // whose push is deployed; "" where there are no repositories

	Settings      *value.Map `json:"settings,omitempty"`      // what set-configuration wrote
	Configuration *value.Map `json:"configuration,omitempty"` // all of it, as of the last init or deploy
	Saved         *time.Time `json:"saved,omitempty"`

	read []byte // the file that it was loaded from
}

// LoadProject reads an entry; one that is absent is nil. One that cannot be read is a *Corrupt.
func LoadProject(path string) (*Project, error) {
	var p Project
	data, err := read(path, "project registry", &p)
	if err != nil || data == nil {
		return nil, err
	}
	p.read = data
	if p.APIVersion > APIVersion {
		return nil, diag.WithHint(fmt.Errorf("the project %s is of API version %d, and this agent knows up to %d", p.Name,
			p.APIVersion, APIVersion),
			"install the agent that wrote %s, or a newer one", path)
	}
	return &p, nil
}

// Save replaces the entry. It may hold what only root is to know.
func (p *Project) Save(path string) error {
	p.APIVersion = APIVersion
	return write(path, "project registry", p, p.read, 0o700, 0o600)
}
