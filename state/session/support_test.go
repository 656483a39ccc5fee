package session_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// settings writes files, such as states/t.sls and pillar/top.sls, into a new directory. It returns settings with them,
// and the directory.
func settings(t testing.TB, files map[string]string) (session.Settings, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h, err := machine.New(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return session.Settings{
		Host: h, ID: "web-01",
		Grains: value.NewMap("id", "web-01", "os", "Debian", "os_family", "Debian", "role", "web"),
		States: []roots.Env{{Name: "base", Dirs: []string{dir + "/states"}}},
		Pillar: []roots.Env{{Name: "base", Dirs: []string{dir + "/pillar"}}},
	}, dir
}

// answer calls a function of a session and returns its result.
func answer(t testing.TB, s *session.Session, name string, args ...any) (any, error) {
	t.Helper()
	a, err := s.Call(t.Context(), name, args, value.NewMap(), nil)
	return a.Value, err
}

// runStates runs t.sls of a directory on a host, or only tries it.
func runStates(t *testing.T, h *host.Host, dir string, test bool) []*exec.Result {
	t.Helper()
	s := families.New(session.Settings{Host: h, ID: "t", Grains: value.NewMap("id", "t"), Test: test,
		States: []roots.Env{{Name: "base", Dirs: []string{dir}}}})
	p, err := s.Program(t.Context(), s.Named("t"))
	if err != nil {
		t.Fatal(err)
	}
	return s.Run(t.Context(), p, nil).All()
}
