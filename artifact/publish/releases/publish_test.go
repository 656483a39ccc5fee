package releases_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/publish/roots"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func TestHostResolvesWhatWasPublishedAndPromoted(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := artifacttest.Publisher(t, mem.New())
	first, err := releases.Publish(ctx, p, releases.Request{Project: "myapp", Version: "1.0",
		File: artifacttest.App(t, "one"), Channel: "testing"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := releases.Publish(ctx, p, releases.Request{Project: "myapp", Version: "1.1",
		File: artifacttest.App(t, "two"), Channel: "testing"}); err != nil {
		t.Fatal(err)
	}
	got, err := artifacttest.Client(t, p).Resolve(ctx, artifact.Ref{Project: "myapp", Channel: "testing"})
	if err != nil || got.Version != "1.1" {
		t.Fatalf("testing is %v, %v, want 1.1", got, err)
	}
	if _, err := artifacttest.Client(t, p).Resolve(ctx, artifact.Ref{Project: "myapp",
		Channel: "production"}); !errors.Is(err, trust.ErrNoChannel) {
		t.Errorf("production before promotion: %v, want ErrNoChannel", err)
	}
	if _, err := releases.Promote(ctx, p, "myapp", "testng", "production"); !errors.Is(err, trust.ErrNoChannel) ||
		!strings.Contains(diag.HintOf(err), `did you mean "testing"?`) {
		t.Errorf("promotion from a misspelled channel: %v, hint %q", err, diag.HintOf(err))
	}
	if _, err := releases.Promote(ctx, p, "myap", "testing", "production"); !errors.Is(err, trust.ErrNoProject) ||
		!strings.Contains(diag.HintOf(err), `did you mean "myapp"?`) {
		t.Errorf("promotion of a misspelled project: %v, hint %q", err, diag.HintOf(err))
	}
	if _, err := releases.Promote(ctx, p, "myapp", "testing", "production"); err != nil {
		t.Fatal(err)
	}
	got, err = artifacttest.Client(t, p).Resolve(ctx, artifact.Ref{Project: "myapp", Channel: "production"})
	if err != nil || got.Version != "1.1" || got.Digest == first.Digest {
		t.Errorf("production is %v, %v, want the bytes of 1.1", got, err)
	}
}

func TestVersionsAreImmutable(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := artifacttest.Publisher(t, mem.New())
	file := artifacttest.App(t, "one")
	request := releases.Request{Project: "myapp", Version: "1.0", File: file, Channel: "testing"}
	for range 2 { // publishing the same bytes again is not a change
		if _, err := releases.Publish(ctx, p, request); err != nil {
			t.Fatal(err)
		}
	}
	request.File = artifacttest.App(t, "other")
	var immutable *releases.Immutable
	if _, err := releases.Publish(ctx, p, request); !errors.As(err, &immutable) {
		t.Fatalf("other bytes under a published version: %v, want *Immutable", err)
	}
}

func TestPublishersAtTheSameTimeLoseNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := artifacttest.Publisher(t, mem.New())
	if _, err := releases.Publish(ctx, p, releases.Request{Project: "myapp", Version: "0",
		File: artifacttest.App(t, "0")}); err != nil {
		t.Fatal(err)
	}
	const many = 8
	var wait sync.WaitGroup
	for i := range many {
		file := artifacttest.App(t, fmt.Sprint(i))
		mine := *p
		mine.Seen = t.TempDir()
		root, _ := os.ReadFile(filepath.Join(p.Keys.Dir, roots.RootName))
		if err := trust.Pin(mine.Seen, root); err != nil {
			t.Fatal(err)
		}
		wait.Go(func() {
			request := releases.Request{Project: "myapp", Version: fmt.Sprintf("1.%d", i), File: file,
				Channel: fmt.Sprintf("c%d", i)}
			if _, err := releases.Publish(ctx, &mine, request); err != nil {
				t.Errorf("publisher %d: %v", i, err)
			}
		})
	}
	wait.Wait()
	list, err := artifacttest.Client(t, p).List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(list[0].Channels); n != many {
		t.Errorf("%d channels, want %d", n, many)
	}
	if n := len(list[0].Releases); n != many+1 {
		t.Errorf("%d releases, want %d", n, many+1)
	}
}
