package publish_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/refresh"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/dir"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
)

func TestConcurrentPublishersLoseNoChange(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	for name, s := range map[string]store.Store{"mem": mem.New(), "dir": dir.New(t.TempDir())} {
		t.Run(name, func(t *testing.T) { allPublishers(t, artifacttest.Publisher(t, s)) })
	}
}

// allPublishers has several publishers publish, promote, withdraw, delegate and refresh concurrently.
func allPublishers(t *testing.T, p *publish.Publisher) {
	t.Helper()
	ctx := t.Context()
	const projects, versions = 3, 3
	for i := range projects {
		for _, version := range []string{"old", "0"} {
			if _, err := releases.Publish(ctx, p, releases.Request{Project: fmt.Sprintf("app%d", i), Version: version,
				File: artifacttest.App(t, version), Channel: "first"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var wait sync.WaitGroup
	attempt := func(what string, do func(*publish.Publisher) error) {
		mine := artifacttest.Beside(t, p)
		wait.Go(func() {
			if err := do(mine); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	for i := range projects {
		project := fmt.Sprintf("app%d", i)
		for v := range versions {
			file, version := artifacttest.App(t, fmt.Sprint(i, v)), fmt.Sprintf("1.%d", v)
			attempt("publishing "+project+" "+version, func(p *publish.Publisher) error {
				_, err := releases.Publish(ctx, p, releases.Request{Project: project, Version: version, File: file,
					Channel: fmt.Sprintf("c%d", v)})
				return err
			})
		}
		attempt("promoting "+project, func(p *publish.Publisher) error {
			_, err := releases.Promote(ctx, p, project, "first", "second")
			return err
		})
		attempt("withdrawing "+project, func(p *publish.Publisher) error {
			_, err := releases.Yank(ctx, p, project, "old", "too old")
			return err
		})
	}
	attempt("refreshing", func(p *publish.Publisher) error { _, err := refresh.Roles(ctx, p, 0); return err })
	wait.Wait()
	list, err := artifacttest.Client(t, p).List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range list {
		var missing []string
		for _, channel := range []string{"first", "second", "c0", "c1", "c2"} {
			if _, ok := l.Channels[channel]; !ok {
				missing = append(missing, channel)
			}
		}
		if len(missing) > 0 || len(l.Releases) != versions+2 || l.Yanked["old"].Reason != "too old" {
			t.Errorf("%s lacks channels %s, has %d of %d releases, withdrawn %v", l.Project, strings.Join(missing, " "),
				len(l.Releases), versions+2, l.Yanked)
		}
	}
	if len(list) != projects {
		t.Errorf("the store has %d projects, want %d", len(list), projects)
	}
}
