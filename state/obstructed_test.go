package state_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// readers are expressions of templates that read the file /srv/data/f or the directory /srv/data/d.
var readers = map[string]string{
	"file.read":            "{% set x = salt['file.read']('/srv/data/f') %}",
	"file.get_hash":        "{% set x = salt['file.get_hash']('/srv/data/f') %}",
	"file.readdir":         "{% set x = salt['file.readdir']('/srv/data/d') %}",
	"file.stats":           "{% set x = salt['file.stats']('/srv/data/d/f') %}",
	"hashutil.digest_file": "{% set x = salt['hashutil.digest_file']('/srv/data/f') %}",
	"file_hashsum":         "{% set x = '/srv/data/f' | file_hashsum %}",
	"pillar":               "", // the pillar reads the file
}

// TestTemplatesThatReadWhatUsersPutThere compiles templates that read files of a directory, in which users can exchange
// them or not. A pipe holds no compile, and the error says whether a user may have caused it. A template with a mistake
// of its own is at fault in any case.
func TestTemplatesThatReadWhatUsersPutThere(t *testing.T) {
	for kind, put := range map[string]func(dir string) error{
		"pipe": func(dir string) error {
			return errors.Join(unix.Mkfifo(dir+"/f", 0o644), unix.Mkfifo(dir+"/d", 0o644))
		},
		"directory": func(dir string) error {
			return errors.Join(os.Mkdir(dir+"/f", 0o755), os.WriteFile(dir+"/d", nil, 0o644))
		},
		"nothing": func(string) error { return nil },
	} {
		for _, open := range []bool{true, false} {
			for name, expression := range readers {
				root := t.TempDir()
				dir := filepath.Join(root, "srv/data")
				mode := map[bool]os.FileMode{true: 0o777, false: 0o755}[open]
				if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, mode), put(dir)); err != nil {
					t.Fatal(err)
				}
				pillar := ""
				if name == "pillar" {
					pillar = readers["file.read"]
				}
				mistaken := compileIn(t, root, map[string]string{"states/a.sls": expression + "a:\n  test.nop: []\n",
					"pillar/p.sls": pillar + "a: b\n", "states/b.sls": "b:\n  test.nap: []\n"})
				err := compileIn(t, root, map[string]string{"states/b.sls": ""})
				var by *state.Obstructed
				if err == nil || errors.As(err, &by) != open ||
					open && !strings.Contains(err.Error(), "any user can change /srv/data") {
					t.Errorf("%s, %s, open to users %v: %v", kind, name, open, err)
				}
				var read *state.Obstructed
				if name == "file.read" && errors.As(mistaken, &read) {
					t.Errorf("%s, %s: the mistake of the template is not at fault: %v", kind, name, mistaken)
				}
			}
		}
	}
}

// compileIn writes files below a root and compiles the states a and b there.
func compileIn(t *testing.T, root string, files map[string]string) error {
	t.Helper()
	files["states/top.sls"], files["pillar/top.sls"] = "base: {'*': [a, b]}\n", "base: {'*': [p]}\n"
	for name, text := range files {
		hosttest.Put(t, filepath.Join(root, name), text, 0o644)
	}
	h, err := machine.New(host.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	_, err = state.Native{}.Compile(t.Context(), state.Request{Host: h, Grains: value.NewMap("id", "h1"),
		StateRoots: []string{"/states"}, PillarRoots: []string{"/pillar"}})
	return err
}
