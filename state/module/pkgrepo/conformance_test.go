package pkgrepo_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/pkgrepo"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

// tree opens URLs in the file tree of the case: salt://x is /salt/x.
type tree struct{ h *statetest.Host }

func (s tree) Open(_ context.Context, url, _ string) (io.ReadCloser, error) {
	scheme, path, _ := strings.Cut(url, "://")
	return s.h.Files.Open("/" + scheme + "/" + path)
}

func TestRepositories(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "pkgrepo",
		Functions: func(h *statetest.Host) module.Table { return pkgrepo.Functions(tree{h}) },
		Prepare:   func(_ *testing.T, h *statetest.Host) { statetest.UsePackages(h) },
		Cases:     statetest.Load(t, "testdata/*.yaml"),
	})
}
