package releases_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// TestAMoveIsNotMadeOnARolloutThatStartedMeanwhile aborts a rollout while another person starts the next one: the abort
// is repeated on the new state of the store, and must not abort the new rollout. Going back is refused likewise.
func TestAMoveIsNotMadeOnARolloutThatStartedMeanwhile(t *testing.T) {
	repo := artifacttest.New(t)
	ref := artifact.Ref{Project: "myapp", Channel: "production"}
	first := repo.Release("myapp", "1", "testing", artifacttest.Files{"version": "1"})
	for _, version := range []string{"2", "3"} {
		repo.Release("myapp", version, "testing", artifacttest.Files{"version": version})
	}
	if err := repo.Publisher.Change(t.Context(), func(n *publish.Next) error {
		return trust.SetRollouts(n.Targets(), map[string]rollout.Plan{ref.String(): rollout.Default()})
	}); err != nil {
		t.Fatal(err)
	}
	starts := func(p *publish.Publisher, id string) {
		p.Start = func(_ context.Context, b publish.Beginning) (*rollout.Start, func(context.Context) error, error) {
			start := b.Plan.NewStart(id, string(b.Release.Digest), time.Now(), nil)
			start.Roster, start.Before = "sha256:"+strings.Repeat("ab", 32), b.Before
			return &start, func(context.Context) error { return nil }, nil
		}
	}
	point := func(p *publish.Publisher, version string) {
		t.Helper()
		if _, err := releases.Point(t.Context(), p, ref, version); err != nil {
			t.Fatal(err)
		}
	}
	mine, other := repo.Publisher, artifacttest.Beside(t, repo.Publisher)
	starts(mine, "1-c0ffee")
	starts(other, "2-c0ffee")
	point(mine, "1")
	point(mine, "2")
	times := 0
	_, err := releases.Steer(t.Context(), mine, ref, "abort", func(s *rollout.Start) error {
		if times++; times == 1 {
			point(other, "3")
		}
		s.Aborted = true
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "another rollout of myapp/production has started meanwhile") {
		t.Errorf("%v, after %d tries", err, times)
	}
	_, _, err = releases.Back(t.Context(), mine, ref, rollout.Start{ID: "1-c0ffee",
		Before: &rollout.Before{Version: "1", Digest: first.Digest}})
	if err == nil || !strings.Contains(err.Error(), "another rollout of myapp/production has started meanwhile") {
		t.Errorf("going back: %v", err)
	}
	client := artifacttest.Client(t, repo.Publisher)
	if _, pointer, err := client.Named(t.Context(), ref); err != nil || pointer.Version != "3" || pointer.Rollout.Aborted {
		t.Errorf("the channel is %+v, %v", pointer, err)
	}
}

// ahead is a store whose clock is ahead of the publisher's.
type ahead struct {
	store.Store
	by time.Duration
}

func (s ahead) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	body, info, err := s.Store.Get(ctx, key, from)
	info.Now = time.Now().Add(s.by)
	return body, info, err
}

// TestRolloutsStartByTheStoresClock checks that a publisher whose clock is behind starts a rollout at the time of the
// store, by which hosts count their waves.
func TestRolloutsStartByTheStoresClock(t *testing.T) {
	repo := artifacttest.New(t)
	ref := artifact.Ref{Project: "myapp", Channel: "production"}
	repo.Release("myapp", "1", "testing", artifacttest.Files{"version": "1"})
	if err := repo.Publisher.Change(t.Context(), func(n *publish.Next) error {
		return trust.SetRollouts(n.Targets(), map[string]rollout.Plan{ref.String(): rollout.Default()})
	}); err != nil {
		t.Fatal(err)
	}
	p := repo.Publisher
	p.Store = ahead{p.Store, 4 * time.Minute}
	var off time.Duration
	p.Start = func(_ context.Context, b publish.Beginning) (*rollout.Start, func(context.Context) error, error) {
		off = time.Until(b.Now)
		return nil, nil, nil
	}
	if _, err := releases.Point(t.Context(), p, ref, "1"); err != nil {
		t.Fatal(err)
	}
	if off < 3*time.Minute || off > 4*time.Minute {
		t.Errorf("a rollout starts %v after the publisher's time, want 4m", off)
	}
}
