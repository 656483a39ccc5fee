package history_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/history"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
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
	slices.Sort(got) // moves of one second have no order
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
