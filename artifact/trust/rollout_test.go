package trust_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

var production = artifact.Ref{Project: "myapp", Channel: "production"}

// setPlan signs a plan for myapp/production.
func setPlan(t *testing.T, repo *artifacttest.Repo, plan rollout.Plan) {
	t.Helper()
	if err := repo.Publisher.Change(t.Context(), func(n *publish.Next) error {
		return trust.SetRollouts(n.Targets(), map[string]rollout.Plan{production.String(): plan})
	}); err != nil {
		t.Fatal(err)
	}
}

// setStart signs a rollout of the release that myapp/production names.
func setStart(t *testing.T, repo *artifacttest.Repo, start rollout.Start) error {
	return repo.Publisher.Change(t.Context(), func(n *publish.Next) error {
		role, err := n.Project(t.Context(), production.Project)
		if err != nil {
			return err
		}
		channels, err := trust.Channels(role)
		if err != nil {
			return err
		}
		pointer := channels[production.Channel]
		pointer.Rollout = &start
		channels[production.Channel] = pointer
		return trust.SetChannels(role, channels)
	})
}

func goodStart(plan rollout.Plan) rollout.Start {
	digest := "sha256:" + strings.Repeat("ab", 32)
	start := plan.NewStart("1-c0ffee", digest, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		[]rollout.Host{{Name: "a"}, {Name: "b"}, {Name: "c"}})
	start.Roster, start.Before = digest, &rollout.Before{Version: "0.9", Digest: artifact.Digest(digest)}
	return start
}

func TestHostsReadThePlanAndTheStartOfARollout(t *testing.T) {
	repo := artifacttest.New(t)
	host := repo.Host()
	repo.Release("myapp", "1", "production", app("1"))
	plan := rollout.Default()
	plan.Agent, plan.First = "1.4.0", []string{"myapp-production-*-1"}
	plan.Windows = []rollout.Window{"Mon-Thu 09:00-16:00 Atlantis/Capital"} // a time zone that hosts may not know
	setPlan(t, repo, plan)
	start := goodStart(plan)
	if err := setStart(t, repo, start); err != nil {
		t.Fatal(err)
	}
	client, err := host.Client()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := client.Rollout(production); err != nil || !reflect.DeepEqual(*got, plan) {
		t.Errorf("the plan is %+v, %v; want %+v", got, err, plan)
	}
	other := artifact.Ref{Project: "myapp", Channel: "testing"}
	if got, err := client.Rollout(other); got != nil || err != nil {
		t.Errorf("the plan of a channel without one is %+v, %v", got, err)
	}
	_, pointer, err := client.Named(t.Context(), production)
	if err != nil || !reflect.DeepEqual(*pointer.Rollout, start) {
		t.Errorf("the rollout is %+v, %v; want %+v", pointer.Rollout, err, start)
	}
}

func TestDamagedPlansAreRefused(t *testing.T) {
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "production", app("1"))
	plan := rollout.Default()
	plan.Waves = plan.Waves[:2] // not all hosts
	setPlan(t, repo, plan)
	client, err := repo.Host().Client()
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Rollout(production)
	refused(t, err, trust.CheckForm)
}

func TestDamagedStartsOfRolloutsAreRefused(t *testing.T) {
	for what, change := range map[string]func(*rollout.Start){
		"no ID":               func(s *rollout.Start) { s.ID = "" },
		"an ID that is a way": func(s *rollout.Start) { s.ID = "../x" },
		"a long ID":           func(s *rollout.Start) { s.ID = strings.Repeat("a", 65) },
		"no roster":           func(s *rollout.Start) { s.Roster = "" },
		"no release":          func(s *rollout.Start) { s.Release = "1" },
		"no time":             func(s *rollout.Start) { s.At = time.Time{} },
		"no version before":   func(s *rollout.Start) { s.Before.Version = "../x" },
		"fewer than 0 hosts":  func(s *rollout.Start) { s.Hosts[0] = -1 },
		"fewer than 0 waves":  func(s *rollout.Start) { s.Skipped = -1 },
		"many waves":          func(s *rollout.Start) { s.Hosts = make([]int, 1000) },
	} {
		start := goodStart(rollout.Default())
		if err := start.Check(); err != nil {
			t.Fatal(err)
		}
		if change(&start); start.Check() == nil {
			t.Errorf("%s: %+v is accepted", what, start)
		}
	}
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "production", app("1"))
	start := goodStart(rollout.Default())
	start.ID = "../../hosts"
	if err := setStart(t, repo, start); err != nil { // hosts would refuse it, so it is not published
		return
	}
	_, err := repo.Host().Resolve("myapp/production")
	refused(t, err, trust.CheckForm)
}

// TestFormerProgramsReadPointersWithRollouts checks that programs without rollouts read a pointer by its other fields.
func TestFormerProgramsReadPointersWithRollouts(t *testing.T) {
	start := goodStart(rollout.Default())
	data, err :=
		json.Marshal(map[string]trust.Pointer{"production": {Version: "1", Digest: "d", Serial: 3, Rollout: &start}})
	if err != nil {
		t.Fatal(err)
	}
	former := map[string]struct {
		Version string          `json:"version"`
		Digest  artifact.Digest `json:"digest"`
		Serial  int64           `json:"serial"`
		Proof   json.RawMessage `json:"proof,omitempty"`
	}{}
	if err := json.Unmarshal(data, &former); err != nil || former["production"].Serial != 3 ||
		former["production"].Version != "1" {
		t.Errorf("%+v, %v", former, err)
	}
}
