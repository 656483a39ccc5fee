package releases_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// deaf is a store that loses the response to a write of the timestamp.
type deaf struct{ store.Store }

func (d deaf) Put(ctx context.Context, key string, r io.Reader, size int64, cond store.Condition) (store.Info, error) {
	info, err := d.Store.Put(ctx, key, r, size, cond)
	if key == trust.TimestampKey && err == nil {
		return store.Info{}, &store.Error{Op: store.OpPut, Object: key, Kind: store.ErrUnreachable,
			Cause: errors.New("connection reset")}
	}
	return info, err
}

func TestLostAnswerErrorMentionsPossiblePublish(t *testing.T) {
	t.Parallel()
	repo := artifacttest.New(t)
	repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
	p := &publish.Publisher{Store: deaf{repo.Publisher.Store}, Keys: repo.Publisher.Keys, Seen: repo.Publisher.Seen}
	_, err := releases.Promote(t.Context(), p, "myapp", "testing", "production")
	if !errors.Is(err, store.ErrUnreachable) || !strings.Contains(diag.HintOf(err), "may have been published") ||
		!strings.Contains(diag.HintOf(err), "again") {
		t.Errorf("%v, hint: %s", err, diag.HintOf(err))
	}
	p.Store = repo.Publisher.Store
	if r, err := releases.Promote(t.Context(), p, "myapp", "testing", "production"); err != nil || r.Version != "1" {
		t.Errorf("again: %v, %v", r, err)
	}
}

// TestObjectUnderTheArtifactsNameIsCompared checks that an object with the artifact's name and other content is
// replaced.
func TestObjectUnderTheArtifactsNameIsCompared(t *testing.T) {
	t.Parallel()
	repo := artifacttest.New(t)
	release := repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
	key := trust.ObjectKey(release)
	good := repo.Object(key)
	for name, bad := range map[string][]byte{"shorter": []byte("x"), "as long": bytes.Repeat([]byte("x"), len(good))} {
		repo.Replace(key, bad)
		repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
		if !bytes.Equal(repo.Object(key), good) {
			t.Errorf("%s: what is there is still not the artifact", name)
		}
	}
}
