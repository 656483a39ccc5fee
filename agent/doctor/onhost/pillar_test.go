package onhost_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/doctor"
	"github.com/corpus-agent/corpus-agent/agent/doctor/onhost"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// TestBrokenFilesOfAHostAreFailures puts something else in the place of the pillar of a host, of its init.sls and of
// the configuration below a root.
func TestBrokenFilesOfAHostAreFailures(t *testing.T) {
	const dir = "srv/projects/myapp/pillar"
	file := func(path string) error { return os.WriteFile(path, nil, 0o600) }
	dangling := func(path string) error { return os.Symlink("nowhere", path) }
	for what, c := range map[string]struct {
		path   string
		put    func(path string) error
		check  string
		status doctor.Status
	}{
		"nothing":                   {dir, func(string) error { return nil }, "pillar", doctor.OK},
		"a directory":               {dir, func(path string) error { return os.Mkdir(path, 0o700) }, "pillar", doctor.OK},
		"a file":                    {dir, file, "pillar", doctor.Failed},
		"a link that leads nowhere": {dir, dangling, "pillar", doctor.Failed},
		"a directory as init.sls": {dir + "/init.sls", func(path string) error { return os.Mkdir(path, 0o700) }, "pillar",
			doctor.Failed},
		"a link as agent.yaml": {"etc/corpus/agent.yaml", dangling, "config", doctor.Failed},
	} {
		t.Run(what, func(t *testing.T) {
			root := t.TempDir()
			path := filepath.Join(root, c.path)
			h := &onhost.Host{OpenStore: func(string) (store.Store, error) { return nil, errors.New("none") }}
			h.Layout = layout.Layout{Root: root}
			settings, err := config.Load(config.Sources{File: h.Layout.Config()})
			h.Config = settings
			if err := errors.Join(err, os.MkdirAll(h.Layout.State(), 0o755), os.MkdirAll(filepath.Dir(path), 0o755),
				os.MkdirAll(filepath.Join(root, "etc"), 0o755), c.put(path),
				os.WriteFile(filepath.Join(root, "etc/hostname"), []byte("myapp-testing-local1-1\n"), 0o644)); err != nil {
				t.Fatal(err)
			}
			found, err := h.Examine(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			there := false
			for _, f := range found.List {
				there = there || f.Check == c.check && f.Status == c.status && (f.Status == doctor.OK ||
					strings.Contains(f.Text, filepath.Base(c.path)) && f.Cure != "")
			}
			if !there {
				t.Errorf("the findings are %v", found.List)
			}
		})
	}
}
