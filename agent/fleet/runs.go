package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// Run is a run as a host reported it, with the fields that a page shows. All texts were written by the host.
type Run struct {
	ID       string       `json:"id"`
	Host     string       `json:"host"`
	Sequence int64        `json:"sequence"`
	Command  string       `json:"command"`
	Started  time.Time    `json:"started"`
	Ended    time.Time    `json:"ended"`
	Outcome  string       `json:"outcome"`
	Exit     int          `json:"exit_code"`
	Agent    string       `json:"agent"`
	From     *ledger.Pair `json:"from"`
	To       *ledger.Pair `json:"to"`
	Left     *ledger.Pair `json:"left"`
	Withheld *ledger.Pair `json:"withheld"`
	Stages   []RunStage   `json:"stages"`

	Hooks  map[string][]RunHook `json:"hooks"`
	Units  []RunUnit            `json:"units"`
	Health []RunProbe           `json:"health"`
	Steps  []RunStep            `json:"steps"`
	Notes  []string             `json:"notes"`
	States struct {
		Total   int `json:"total"`
		Changed int `json:"changed"`
		Failed  int `json:"failed"`
	} `json:"states"`
	Error string `json:"error"`
	Hint  string `json:"hint"`

	Signed bool `json:"-"` // with the key that the host registered
}

// RunStage is a part of a run.
type RunStage struct {
	Name     string        `json:"name"`
	Duration time.Duration `json:"duration_ns"`
	Error    string        `json:"error"`
}

// RunHook is a hook that ran.
type RunHook struct {
	Name     string        `json:"name"`
	Duration time.Duration `json:"duration_ns"`
	Error    string        `json:"error"`
}

// RunUnit is an action on a unit.
type RunUnit struct {
	Unit     string        `json:"unit"`
	Action   string        `json:"action"`
	Duration time.Duration `json:"duration_ns"`
	Error    string        `json:"error"`
}

// RunProbe is a probe of a release.
type RunProbe struct {
	Probe    string        `json:"probe"`
	Duration time.Duration `json:"duration_ns"`
	Error    string        `json:"error"`
}

// RunStep is a state of a run.
type RunStep struct {
	ID       string          `json:"id"`
	Function string          `json:"function"`
	Name     string          `json:"name"`
	SLS      string          `json:"sls"`
	Result   string          `json:"result"`
	Changes  json.RawMessage `json:"changes"`
	Comment  string          `json:"comment"`
	Hint     string          `json:"hint"`
	Warnings []string        `json:"warnings"`
	Duration time.Duration   `json:"duration_ns"`
}

// mostRuns bounds how many of a host's newest runs are read.
const mostRuns = 12

// Runs returns the newest runs of a host, the newest first: those of the day of its record, or of the month if these
// are few. It omits reports that are not signed with the host's key or not about the host.
func Runs(ctx context.Context, s store.Store, known hostkey.Registry, r hostrecord.Listed) ([]Run, error) {
	below := Prefix(r.Project) + r.Host + "/"
	var ids []string
	for _, length := range []int{len("20060102"), len("200601")} {
		var err error
		if ids, err = runsBelow(ctx, s, below, r.Run[:length]); err != nil {
			return nil, err
		}
		if len(ids) >= mostRuns {
			break
		}
	}
	var runs []Run
	for _, id := range ids[:min(len(ids), mostRuns)] {
		run, err := readRun(ctx, s, known, r.Host, below, id)
		if err != nil {
			return nil, err
		}
		if run != nil {
			runs = append(runs, *run)
		}
	}
	slices.SortStableFunc(runs, func(a, b Run) int {
		return cmp.Or(cmp.Compare(b.Sequence, a.Sequence), cmp.Compare(b.ID, a.ID))
	})
	return runs, nil
}

// mostNames bounds how many names of reports of a host are listed.
const mostNames = 20_000

// runsBelow returns the IDs of a host's runs that start with begin, the newest first.
func runsBelow(ctx context.Context, s store.Store, below, begin string) (ids []string, err error) {
	for info, err := range s.List(ctx, below+begin) {
		if err != nil {
			return nil, fmt.Errorf("reading the reports of hosts: %w", err)
		}
		id, ok := strings.CutSuffix(strings.TrimPrefix(info.Key, below), ".json")
		if _, err := time.Parse(hostrecord.RunTime, id); ok && err == nil {
			ids = append(ids, id)
		}
		if len(ids) == mostNames {
			break
		}
	}
	slices.Reverse(ids)
	return ids, nil
}

func readRun(ctx context.Context, s store.Store, known hostkey.Registry, host, below, id string) (*Run, error) {
	key := below + id + ".json"
	data, _, err := store.ReadUpTo(ctx, s, key, maxReport)
	if err != nil {
		return nil, fmt.Errorf("reading the reports of hosts: %w", err)
	}
	signed, err := known.Check(host, key, data)
	var run Run
	if err != nil || json.Unmarshal(data, &run) != nil || run.Host != host || run.ID != id {
		return nil, nil //nolint:nilnil,nilerr // it is not a report of this host
	}
	run.Signed = signed
	return &run, nil
}
