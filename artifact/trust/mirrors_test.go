package trust_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// spoiled is a store whose answer function changes the metadata.
type spoiled struct {
	store.Store
	answer func(key, text string) (string, error)
}

func (s spoiled) Get(ctx context.Context, key string, _ int64) (io.ReadCloser, store.Info, error) {
	body, info, err := s.Store.Get(ctx, key, 0)
	text := ""
	if err == nil {
		data, _ := io.ReadAll(body)
		text = string(data)
	}
	out, bad := s.answer(key, text)
	if bad != nil {
		return nil, store.Info{}, bad
	}
	if err != nil && out == "" {
		return nil, store.Info{}, err
	}
	info.Size = int64(len(out))
	return io.NopCloser(strings.NewReader(out)), info, nil
}

// TestMetadataFailsOverToMirror uses a first store whose metadata is refused, for several reasons.
func TestMetadataFailsOverToMirror(t *testing.T) {
	page := "<!DOCTYPE html><html>Please log in</html>"
	damage := func(what string) func(key, text string) (string, error) {
		return func(key, text string) (string, error) {
			if strings.HasSuffix(key, what) {
				text = strings.Replace(text, "version", "versiom", 1)
			}
			return text, nil
		}
	}
	for name, answer := range map[string]func(key, text string) (string, error){
		"404":               func(string, string) (string, error) { return "", store.ErrNotFound },
		"403":               func(string, string) (string, error) { return "", store.ErrForbidden },
		"a web page":        func(string, string) (string, error) { return page, nil },
		"damaged timestamp": damage("timestamp.json"),
		"damaged snapshot":  damage(".snapshot.json"),
		"damaged targets":   damage(".targets.json"),
		"damaged project":   damage(".myapp.json"),
		"damaged head":      damage(".myapp~head.json"),
	} {
		t.Run(name, func(t *testing.T) {
			repo := artifacttest.New(t)
			repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
			host := repo.Host()
			host.Store = store.Failover(spoiled{repo.Publisher.Store, answer}, repo.Publisher.Store)
			if r, err := host.Resolve("myapp/testing"); err != nil || r.Version != "1" {
				t.Errorf("%v, %v", r, err)
			}
		})
	}
}

// TestCaptivePortalMeansUnreachable checks that a captive portal counts as an unreachable store, and not as a hostile
// one.
func TestCaptivePortalMeansUnreachable(t *testing.T) {
	repo := artifacttest.On(t, mem.New())
	repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
	host := repo.Host()
	host.Store = spoiled{repo.Publisher.Store,
		func(string, string) (string, error) { return "\n<html>Please log in</html>", nil }}
	_, err := host.Resolve("myapp/testing")
	var refused *trust.Refused
	if !errors.Is(err, store.ErrUnreachable) || errors.As(err, &refused) ||
		!strings.Contains(diag.HintOf(err), "captive portal") {
		t.Errorf("%v, hint: %s", err, diag.HintOf(err))
	}
}

// TestCaptivePortalInPlaceOfAnArtifact sends a web page in place of an artifact, shorter than the artifact or of the
// same length.
func TestCaptivePortalInPlaceOfAnArtifact(t *testing.T) {
	repo := artifacttest.On(t, mem.New())
	repo.Release("myapp", "1", "testing", artifacttest.Files{"app": strings.Repeat("1", 5000)})
	for name, page := range map[string]func(length int) string{
		"with another length": func(int) string { return "\n<html>Please log in</html>" },
		"as long":             func(n int) string { return ("<!DOCTYPE html>" + strings.Repeat(" ", n))[:n] },
	} {
		host := repo.Host()
		host.Store = spoiled{repo.Publisher.Store, func(key, text string) (string, error) {
			if strings.Contains(key, ".tar.") && !strings.HasSuffix(key, ".blocks") {
				return page(len(text)), nil
			}
			return text, nil
		}}
		release, err := host.Resolve("myapp/testing")
		if err != nil {
			t.Fatal(err)
		}
		client, err := host.Client()
		if err != nil {
			t.Fatal(err)
		}
		into, err := os.Create(filepath.Join(t.TempDir(), "artifact"))
		if err != nil {
			t.Fatal(err)
		}
		_, fetched := client.Fetch(t.Context(), release, into, nil)
		for what, err := range map[string]error{"fetch": fetched, "check": client.Check(t.Context(), release, nil)} {
			var refused *trust.Refused
			if !errors.Is(err, store.ErrUnreachable) || errors.As(err, &refused) ||
				!strings.Contains(diag.HintOf(err), "captive portal") {
				t.Errorf("%s of a page %s: %v, hint: %s", what, name, err, diag.HintOf(err))
			}
		}
		_ = into.Close()
	}
}
