package history_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/history"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/rollout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// moves returns the moves of a project, one on each line, the newest first.
func moves(t *testing.T, repo *artifacttest.Repo) (lines []string) {
	t.Helper()
	client := artifacttest.Client(t, repo.Publisher)
	l, err := client.ListOne(t.Context(), "myapp")
	if err != nil {
		t.Fatal(err)
	}
	all, err := history.Read(t.Context(), repo.Store, client, l)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.At.IsZero() {
			t.Errorf("%+v has no time", m)
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintln(m.Ref.Channel, m.What, m.Version, m.Who, len(m.By), m.Verified)))
	}
	return lines
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	slices.Sort(got) // moves within one second have no order
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: the moves are\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestMovesHaveWhoAndWhen reads a project whose first move an older program signed, from signed metadata, and from
// metadata that another user has written.
func TestMovesHaveWhoAndWhen(t *testing.T) {
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "testing", artifacttest.Files{"version": "1"})
	repo.Release("myapp", "2", "", artifacttest.Files{"version": "2"})
	if err := repo.Publisher.Change(t.Context(), func(n *publish.Next) error { // as older programs sign
		role, err := n.Project(t.Context(), "myapp")
		if err != nil {
			return err
		}
		channels, err := trust.Channels(role)
		if err != nil {
			return err
		}
		p := channels["testing"]
		p.Moved = nil
		channels["staging"] = p
		return trust.SetChannels(role, channels)
	}); err != nil {
		t.Fatal(err)
	}
	repo.Publisher.Who = "anna@example.com"
	if _, err := releases.Point(t.Context(), repo.Publisher, artifact.Ref{Project: "myapp", Channel: "testing"},
		"2"); err != nil {
		t.Fatal(err)
	}
	repo.Publisher.Who = "bert@example.com"
	if _, err := releases.Promote(t.Context(), repo.Publisher, "myapp", "testing", "production"); err != nil {
		t.Fatal(err)
	}
	if _, err := releases.Unpoint(t.Context(), repo.Publisher,
		artifact.Ref{Project: "myapp", Channel: "staging"}); err != nil {
		t.Fatal(err)
	}
	all := []string{"staging remove   0 true", "production promote 2 bert@example.com 1 true",
		"testing point 2 anna@example.com 1 true", "staging moved 1  0 true", "testing publish 1  1 true"}
	expect(t, "in all", moves(t, repo), all...)

	// A user who may write to the store may replace earlier metadata, whose moves are then not verified.
	for serial, done := int64(1), false; !done; serial++ {
		key := trust.RoleKey(trust.HeadRole("myapp"), serial)
		data, _, err := store.ReadUpTo(t.Context(), repo.Store, key, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if done = strings.Contains(string(data), "anna@example.com"); !done {
			continue
		}
		forged := strings.ReplaceAll(string(data), "anna@example.com", "eve@example.com")
		if _, err := repo.Store.Put(t.Context(), key, strings.NewReader(forged), int64(len(forged)),
			store.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, "with forged metadata", moves(t, repo), append(all, "testing point 2 eve@example.com 1 false")...)
}

// losingRace is a store in which another publisher commits first: before runs once, before the timestamp is written.
type losingRace struct {
	store.Store
	before func()
}

// Put is part of store.Store.
func (s *losingRace) Put(ctx context.Context, key string, r io.Reader, size int64,
	cond store.Condition) (store.Info, error) {
	if before := s.before; key == trust.TimestampKey && before != nil {
		s.before = nil
		before()
	}
	return s.Store.Put(ctx, key, r, size, cond)
}

// TestOnlyMovesThatTookEffectAreListed checks that a move that lost a race and was then refused is not in the history,
// and that one that was repeated is there once.
func TestOnlyMovesThatTookEffectAreListed(t *testing.T) {
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "testing", artifacttest.Files{"version": "1"})
	repo.Release("myapp", "2", "staging", artifacttest.Files{"version": "2"})
	bert := repo.Publisher
	bert.Who = "bert"
	at := time.Now()
	lost := func(during func() error, move func(anna *publish.Publisher) error) error {
		t.Helper()
		s := &losingRace{Store: bert.Store, before: func() {
			if err := during(); err != nil {
				t.Error(err)
			}
		}}
		anna := &publish.Publisher{Store: s, Keys: bert.Keys, Seen: bert.Seen, Who: "anna",
			Now: func() time.Time { at = at.Add(time.Second); return at }}
		return move(anna)
	}
	ref := artifact.Ref{Project: "myapp", Channel: "production"}
	point := func(p *publish.Publisher, version string) error {
		_, err := releases.Point(t.Context(), p, ref, version)
		return err
	}
	if err := lost(func() error { return point(bert, "1") },
		func(anna *publish.Publisher) error { return point(anna, "2") }); err != nil {
		t.Fatal(err)
	}
	all := []string{"production point 2 anna 1 true", "production point 1 bert 1 true", "staging publish 2  1 true",
		"testing publish 1  1 true"}
	expect(t, "with a move that was repeated", moves(t, repo), all...)

	unpoint := func() error {
		_, err := releases.Unpoint(t.Context(), bert, artifact.Ref{Project: "myapp", Channel: "testing"})
		return err
	}
	if err := lost(unpoint, func(anna *publish.Publisher) error {
		_, err := releases.Promote(t.Context(), anna, "myapp", "testing", "production")
		return err
	}); err == nil {
		t.Fatal("a channel that was removed meanwhile was promoted")
	}
	expect(t, "with a move that was refused", moves(t, repo), append(all, "testing remove   0 true")...)
}

// TestEqualMovesOfOneSecondAreListed pauses, resumes and pauses a rollout within one second.
func TestEqualMovesOfOneSecondAreListed(t *testing.T) {
	repo := artifacttest.New(t)
	r := repo.Release("myapp", "1", "testing", artifacttest.Files{"version": "1"})
	at := time.Now().UTC().Truncate(time.Second)
	repo.Publisher.Now = func() time.Time { return at }
	if err := repo.Publisher.Change(t.Context(), func(n *publish.Next) error {
		role, err := n.Project(t.Context(), "myapp")
		if err != nil {
			return err
		}
		channels, err := trust.Channels(role)
		if err != nil {
			return err
		}
		p := channels["testing"]
		p.Rollout = &rollout.Start{ID: "1-a", Release: string(r.Digest), At: at, Roster: string(r.Digest)}
		channels["testing"] = p
		return trust.SetChannels(role, channels)
	}); err != nil {
		t.Fatal(err)
	}
	ref := artifact.Ref{Project: "myapp", Channel: "testing"}
	for _, pause := range []bool{true, false, true} {
		var err error
		if pause {
			_, err = releases.Pause(t.Context(), repo.Publisher, ref)
		} else {
			_, err = releases.Resume(t.Context(), repo.Publisher, ref, time.Time{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	expect(t, "of one second", moves(t, repo), "testing publish 1  1 true", "testing pause 1  1 true",
		"testing resume 1  1 true", "testing pause 1  1 true")
}

// TestRepeatedPointIsListedOnce checks that pointing a channel again at the release that it names is no move of the
// history, and that pointing it elsewhere and back is.
func TestRepeatedPointIsListedOnce(t *testing.T) {
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "testing", artifacttest.Files{"version": "1"})
	repo.Release("myapp", "2", "testing", artifacttest.Files{"version": "2"})
	p, at := repo.Publisher, time.Now()
	p.Who, p.Now = "bert", func() time.Time { at = at.Add(time.Second); return at }
	for _, version := range []string{"1", "1", "2", "2", "2", "1"} {
		ref := artifact.Ref{Project: "myapp", Channel: "production"}
		if _, err := releases.Point(t.Context(), p, ref, version); err != nil {
			t.Fatal(err)
		}
	}
	all := slices.DeleteFunc(moves(t, repo), func(m string) bool { return !strings.HasPrefix(m, "production ") })
	expect(t, "with points that change nothing", all, "production point 1 bert 1 true", "production point 2 bert 1 true",
		"production point 1 bert 1 true")
}

// TestEqualMovesOfChannelsInOneSecondAreListed points a channel twice at the same release and aborts its rollout twice
// within one second, as well as a channel without a rollout. A second version has the same bytes.
func TestEqualMovesOfChannelsInOneSecondAreListed(t *testing.T) {
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "", artifacttest.Files{"version": "1"})
	repo.Release("myapp", "2", "", artifacttest.Files{"version": "2"})
	repo.Release("myapp", "3", "", artifacttest.Files{"version": "2"})
	p, at := repo.Publisher, time.Now().UTC().Truncate(time.Second)
	p.Who, p.Now = "bert", func() time.Time { return at }
	plain, rolling := artifact.Ref{Project: "myapp", Channel: "plain"}, artifact.Ref{Project: "myapp", Channel: "rolling"}
	point := func(ref artifact.Ref, version string) {
		t.Helper()
		if _, err := releases.Point(t.Context(), p, ref, version); err != nil {
			t.Fatal(err)
		}
	}
	for _, version := range []string{"1", "2", "1"} {
		point(plain, version)
	}
	point(rolling, "1")
	for i := range 2 {
		point(rolling, "2")
		if err := p.Change(t.Context(), func(n *publish.Next) error { // as a program that starts rollouts
			role, err := n.Project(t.Context(), "myapp")
			if err != nil {
				return err
			}
			channels, err := trust.Channels(role)
			if err != nil {
				return err
			}
			now, before := channels["rolling"], channels["plain"]
			now.Rollout = &rollout.Start{ID: fmt.Sprint("r-", i), Release: string(now.Digest), At: at,
				Roster: string(now.Digest), Before: &rollout.Before{Version: before.Version, Digest: before.Digest}}
			channels["rolling"] = now
			return trust.SetChannels(role, channels)
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := releases.SkipWaves(t.Context(), p, rolling, 1); err != nil {
			t.Fatal(err)
		}
		if _, err := releases.Abort(t.Context(), p, rolling); err != nil {
			t.Fatal(err)
		}
	}
	got := slices.DeleteFunc(moves(t, repo), func(m string) bool { return strings.HasPrefix(m, "testing ") })
	want := []string{"plain point 1", "plain point 2", "plain point 1", "rolling point 1", "rolling point 2",
		"rolling skip-wave 2", "rolling abort 1", "rolling point 2", "rolling skip-wave 2", "rolling abort 1"}
	for i := range want {
		want[i] += " bert 1 true"
	}
	slices.Reverse(want)
	if !slices.Equal(got, want) {
		t.Errorf("the moves are, the newest first,\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestMovesFollowTheVersionsOfTheMetadata checks the order of moves whose times say otherwise, since the clocks of
// people differ, of moves within one second, and of the moves of a rollout of which the store has only the last version
// of the metadata.
func TestMovesFollowTheVersionsOfTheMetadata(t *testing.T) {
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "testing", artifacttest.Files{"version": "1"})
	repo.Release("myapp", "2", "", artifacttest.Files{"version": "2"})
	p, at := repo.Publisher, time.Now().UTC().Truncate(time.Second)
	p.Who, p.Now = "bert", func() time.Time { return at }
	ref := artifact.Ref{Project: "myapp", Channel: "production"}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	point := func(version string) {
		t.Helper()
		_, err := releases.Point(t.Context(), p, ref, version)
		must(err)
	}
	point("1")
	at = at.Add(-time.Minute)
	point("2")
	must(p.Change(t.Context(), func(n *publish.Next) error { // as a program that starts rollouts
		role, err := n.Project(t.Context(), "myapp")
		if err != nil {
			return err
		}
		channels, err := trust.Channels(role)
		if err != nil {
			return err
		}
		now, before := channels["production"], channels["testing"]
		now.Rollout = &rollout.Start{ID: "r-1", Release: string(now.Digest), At: at, Roster: string(now.Digest),
			Before: &rollout.Before{Version: before.Version, Digest: before.Digest}}
		channels["production"] = now
		return trust.SetChannels(role, channels)
	}))
	_, err := releases.SkipWaves(t.Context(), p, ref, 1)
	must(err)
	_, err = releases.Pause(t.Context(), p, ref)
	must(err)
	_, err = releases.Abort(t.Context(), p, ref)
	must(err)
	production := func(what string, want ...string) {
		t.Helper()
		got := slices.DeleteFunc(moves(t, repo), func(m string) bool { return !strings.HasPrefix(m, "production ") })
		for i := range want {
			want[i] = "production " + want[i] + " bert 1 true"
		}
		slices.Reverse(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: the moves are, the newest first,\n%s\nwant\n%s", what, strings.Join(got, "\n"),
				strings.Join(want, "\n"))
		}
	}
	production("with all versions", "point 1", "point 2", "skip-wave 2", "pause 2", "abort 1")

	l, err := artifacttest.Client(t, p).ListOne(t.Context(), "myapp")
	must(err)
	for serial := range l.Serial {
		must(repo.Store.Delete(t.Context(), trust.RoleKey(trust.HeadRole("myapp"), serial)))
	}
	production("with the last version", "skip-wave 2", "pause 2", "abort 1")
}
