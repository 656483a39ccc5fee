package agent_test

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
)

// The list of releases marks those that are deployed, in quarantine, withdrawn, or waiting on a held host.
func TestReleasesAreMarked(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publishBase("b1")
	for _, version := range []string{"1", "2"} {
		l.publish(version)
		l.expect(exit.OK)
	}
	l.publish("3-broken")
	l.expect(exit.RolledBack)
	if _, err := releases.Yank(t.Context(), l.repo.Publisher, "myapp", "1", "it leaks"); err != nil {
		t.Fatal(err)
	}
	if err := l.Hold("the fair"); err != nil {
		t.Fatal(err)
	}
	l.publish("4")
	l.expect(exit.OK)
	list, err := l.Releases()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, k := range list {
		got[k.Release.String()] = strings.Join(k.Marks(), "; ")
	}
	for release, want := range map[string]string{
		"base b1": "deployed", "myapp 2": "deployed", "myapp 1": "previous; withdrawn: on ",
		"myapp 3-broken": "quarantined: file.managed of Ensure something failed", "myapp 4": "held: since ",
	} {
		if !strings.HasPrefix(got[release], want) {
			t.Errorf("%s is marked %q, want %q", release, got[release], want)
		}
	}
	if !strings.HasSuffix(got["myapp 4"], "the fair; not on this host") ||
		!strings.HasSuffix(got["myapp 1"], "it leaks") || len(got) != 5 {
		t.Errorf("the marked releases are %q", got)
	}
}
