package trust

import (
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// requiredField is a field of targets, which is signed one level above every project, so that a project's key cannot
// change it. It maps project/channel to a Requirement.
const requiredField = "required"

// Requirement is the condition under which a channel may point at a release: a proof that the same bytes were on
// another channel of the project, and healthy on hosts there.
type Requirement struct {
	From  string `json:"from"`       // the other channel
	Hosts int    `json:"hosts"`      // the minimum number of hosts
	Fresh int    `json:"fresh_days"` // the maximum age of a host's report when it is attested, in days
	Holds int    `json:"holds_days"` // validity of a proof, in days
	// Signed is set if only reports count that are signed with the key that the host registered.
	Signed bool `json:"signed,omitempty"`
}

// The defaults of a requirement.
const (
	DefaultHosts = 1
	DefaultFresh = 7
	DefaultHolds = 90
)

const day = 24 * time.Hour

// FreshFor returns the maximum age of a report when it is attested.
func (q Requirement) FreshFor() time.Duration { return time.Duration(q.Fresh) * day }

// HoldsFor returns the time for which a proof is valid.
func (q Requirement) HoldsFor() time.Duration { return time.Duration(q.Holds) * day }

// Check returns an error if a requirement of a channel is invalid.
func (q Requirement) Check(channel string) error {
	if err := artifact.CheckChannel(q.From); err != nil {
		return err
	}
	if q.From == channel {
		return diag.Usage.Hint(fmt.Errorf("%s cannot require itself", channel),
			"name the channel where a release is tried first")
	}
	const most = 3650
	for what, n := range map[string]int{"hosts": q.Hosts, "fresh": q.Fresh, "holds": q.Holds} {
		if n < 1 || n > most || what == "hosts" && n > MaxHosts {
			return diag.Usage.Hint(fmt.Errorf("--%s %d is out of range", what, n),
				"hosts are 1 to %d, days 1 to %d", MaxHosts, most)
		}
	}
	return nil
}

func (q Requirement) String() string {
	reports := "reports"
	if q.Signed {
		reports = "signed reports"
	}
	return fmt.Sprintf("%s on %s, %s of at most %s, a proof holds %s", q.From, diag.Count(q.Hosts, "host"), reports,
		diag.Count(q.Fresh, "day"), diag.Count(q.Holds, "day"))
}

// Requirements returns the requirements of channels from targets, by project/channel.
func Requirements(targets *Role) (map[string]Requirement, error) {
	return fieldOf[Requirement](targets, requiredField)
}

// SetRequirements sets the requirements of channels before targets is signed.
func SetRequirements(targets *Role, required map[string]Requirement) error {
	return setField(targets, requiredField, required)
}

// Requirement returns the requirement of a channel; nil if it has none.
func (c *Client) Requirement(ref artifact.Ref) (*Requirement, error) {
	all, err := Requirements(c.set.Targets[targetsRole])
	if err != nil {
		return nil, malformed(MetaName(targetsRole), err)
	}
	q, ok := all[ref.String()]
	if !ok {
		return nil, nil
	}
	if err := q.Check(ref.Channel); err != nil {
		return nil, malformed(MetaName(targetsRole), fmt.Errorf("what %s requires: %w", ref, err))
	}
	return &q, nil
}
