package rollout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	plans "github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

const maxBody = 64 << 10

// Record writes the result of a host. Recording the same result of the same run again changes nothing.
func (r Rollout) Record(ctx context.Context, s store.Store, key hostkey.Key, host string, o Outcome, run string) error {
	if err := r.say(ctx, s, key, Name{Host: host, Outcome: o, Run: run}, struct {
		Host    string  `json:"host"`
		Outcome Outcome `json:"outcome"`
		Run     string  `json:"run"`
	}{host, o, run}); err != nil {
		return fmt.Errorf("recording the result of this host in the rollout: %w", err)
	}
	return nil
}

// Grounds describes why a rollout stopped, in the words of the host that found the limit reached. They are not
// verified.
type Grounds struct {
	Host     string    `json:"host"`
	Run      string    `json:"run"`
	At       time.Time `json:"at"`
	Failed   int       `json:"failed"`   // hosts
	Finished int       `json:"finished"` // hosts
	Limit    string    `json:"limit"`
	Hosts    []string  `json:"hosts"` // the first of those that failed
	Why      string    `json:"why"`
}

// namedInGrounds bounds how many hosts the grounds of a halt list.
const namedInGrounds = 20

// RecordHalt records that a host found the limit reached, or that it saw a halt whose record the store has lost.
func (r Rollout) RecordHalt(ctx context.Context, s store.Store, key hostkey.Key, host, run string, e Evidence,
	now time.Time) error {
	v := r.Decide(r.Roster.member(host), e, now)
	g := Grounds{Host: host, Run: run, At: now.UTC(), Failed: v.Failed, Finished: v.All, Limit: r.Plan.Halt.String(),
		Why: v.String()}
	if v.Reason != plans.Stops {
		g.Why = "this host saw the rollout halted, and the store has lost the record of it"
	}
	for _, said := range e.Results {
		if said.Outcome != Healthy && said.At.After(r.Start.Resumed) && len(g.Hosts) < namedInGrounds {
			g.Hosts = append(g.Hosts, said.Host)
		}
	}
	if err := r.say(ctx, s, key, Name{Host: host, Epoch: r.epoch(), Run: run}, g); err != nil {
		return fmt.Errorf("recording that the rollout stops: %w", err)
	}
	return nil
}

// say creates the object of a name.
func (r Rollout) say(ctx context.Context, s store.Store, key hostkey.Key, n Name, body any) error {
	if !n.hasRun() {
		return fmt.Errorf("%q is not the ID of a run", n.Run)
	}
	n.Sig = key.Sign(r.text(n))
	place := r.prefix() + n.String()
	data, err := json.Marshal(body)
	if err == nil {
		data, err = key.Seal(place, data)
	}
	if err == nil {
		_, err = s.Put(ctx, place, bytes.NewReader(data), int64(len(data)), store.Condition{IfAbsent: true})
	}
	if errors.Is(err, store.ErrPrecondition) {
		return nil // it exists
	}
	return err
}

// Grounds reads why a host recorded a halt.
func (r Rollout) Grounds(ctx context.Context, s store.Store, halt Entry) (g Grounds, err error) {
	place := r.prefix() + halt.Name.String()
	data, _, err := fetch(ctx, s, place, maxBody)
	if err != nil {
		return g, fmt.Errorf("reading why the rollout stopped: %w", err)
	}
	m, _ := r.Roster.find(halt.Host)
	if by, err := hostkey.Unseal(place, data); err != nil || by != m.Key {
		return g, fmt.Errorf("reading why the rollout stopped: %s is not signed by %s; if this host halts the rollout again "+
			"after a resume, its key may be stolen: take away its rights to write to the store", place, halt.Host)
	}
	if err := json.Unmarshal(data, &g); err != nil {
		return g, fmt.Errorf("the grounds that %s signed are not in the form that agents write", halt.Host)
	}
	return g, nil
}
