package agent_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// portal is a store that answers with a web page in place of artifacts, their blocks and their chunks.
type portal struct{ store.Store }

func (p portal) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	if !strings.HasPrefix(key, "deploy/") {
		return p.Store.Get(ctx, key, from)
	}
	page := "<html>Please log in</html>"
	return io.NopCloser(strings.NewReader(page[min(int(from), len(page)):])), store.Info{Size: int64(len(page))}, nil
}

// TestCaptivePortalForAnArtifact deploys from a store whose artifacts alone are replaced by a captive portal.
func TestCaptivePortalForAnArtifact(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publish("1")
	l.expect(exit.OK)
	l.publish("2")
	l.store = portal{l.repo.Store}
	if r := l.expect(exit.Unreachable); !strings.Contains(r.Hint, "captive portal") {
		t.Errorf("%s; hint %q", r.Error, r.Hint)
	}
	l.links("1", "1", "")
}
