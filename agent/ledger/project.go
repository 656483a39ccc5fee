package ledger

import (
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// APIVersion is the version of a project's layout on disk and of the input of its procedures. Projects of several
// versions can be on one host, since each entry has its own version.
const APIVersion = 2

// Project is the entry of one project in the registry of a host.
type Project struct {
	APIVersion int    `json:"api_version"`
	Name       string `json:"name"`
	User       string `json:"user,omitempty"` // the owner of the project's data
	Group      string `json:"group,omitempty"`
	Env        string `json:"env,omitempty"`    // dev, staging or prod; "" for that of the instance
	Branch     string `json:"branch,omitempty"` // the branch whose push is deployed; "" if there are no repositories

	Settings      *value.Map `json:"settings,omitempty"`      // what set-configuration wrote
	Configuration *value.Map `json:"configuration,omitempty"` // all of it, as of the last init or deploy
	Saved         *time.Time `json:"saved,omitempty"`

	read []byte // the file that it was loaded from
}

// LoadProject reads an entry. It returns nil if the file does not exist, and a *Corrupt error if it cannot be decoded.
func LoadProject(path string) (*Project, error) {
	var p Project
	data, err := read(path, "project registry", &p)
	if err != nil || data == nil {
		return nil, err
	}
	p.read = data
	if p.APIVersion > APIVersion {
		return nil, diag.Agent.Hint(fmt.Errorf("the project %s is of API version %d, and this agent knows up to %d", p.Name,
			p.APIVersion, APIVersion),
			"install the agent that wrote %s, or a newer one", path)
	}
	return &p, nil
}

// Save replaces the entry. The file is readable by root only, since it may have secrets.
func (p *Project) Save(path string) error {
	p.APIVersion = APIVersion
	return write(path, "project registry", p, p.read, 0o700, 0o600)
}
