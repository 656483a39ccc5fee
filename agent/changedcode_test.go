package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
)

// projectUser is a user who only has the permissions that fixperms gives.
const projectUser = 64011

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it makes files of several users")
	}
}

func owner(t *testing.T, path string) uint32 {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Uid
}

// giveAll gives a tree to the project's user, as agents with the earlier default did.
func giveAll(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			err = os.Chmod(path, 0o644)
		}
		return errors.Join(err, os.Lchown(path, projectUser, projectUser))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCodeOwnedByUserIsReclaimed gives a release to its user, as agents with the earlier default did, while the user
// has a file of it open.
func TestCodeOwnedByUserIsReclaimed(t *testing.T) {
	needsRoot(t)
	for _, recipe := range []string{"", "writable: [.]\n"} {
		l := newNativeLab(t)
		files := stateFiles("1", sets("/srv/out/a", "1"))
		files[".salt/00.sls"], files["app/data"] = sets("/srv/out/b", "1"), "x"
		if recipe != "" {
			files["corpus.yaml"] = recipe
		}
		l.repo.Release("myapp", "1", "testing", files)
		l.expect(exit.OK)
		dir, err := filepath.EvalSymlinks(l.Layout.Path("/srv/service/current"))
		if err != nil {
			t.Fatal(err)
		}
		giveAll(t, dir)
		giveAll(t, filepath.Dir(dir)) // and its parent directory
		sls := filepath.Join(dir, ".salt/00.sls")
		open, err := os.OpenFile(sls, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		noted(t, l.expect(exit.OK), "they belong to root again")
		if _, err := open.WriteString(sets("/srv/out/evil", "1")); err != nil {
			t.Fatal(err)
		}
		_ = open.Close()
		for _, name := range []string{"", ".salt", ".salt/00.sls", "salt", "salt/config/states/top.sls", "app", "app/data",
			".."} {
			if got := owner(t, filepath.Join(dir, name)); got != 0 {
				t.Errorf("with %q: %q belongs to %d", recipe, name, got)
			}
		}
		if data, err := os.ReadFile(sls); err != nil || strings.Contains(string(data), "evil") {
			t.Errorf("its user still writes into %s: %s, %v", sls, data, err)
		}
		if _, err := l.Verify(t.Context()); err != nil {
			t.Errorf("verify: %v", err)
		}
	}
}

// TestChangedCodeIsNotRun changes each kind of file that a run reads or starts, in a release whose recipe has writable
// paths.
func TestChangedCodeIsNotRun(t *testing.T) {
	needsRoot(t)
	l := newHookLab(t)
	l.repo.Release("myapp", "1", "testing", artifacttest.Files{
		"version": "1", "corpus.yaml": "writable: [var, cache]\nhealth: {probes: [{script: bin/check}]}\n",
		"bin/check": "#!/bin/sh\n", "var/x": "x", "cache/x": "x",
		".salt/00.sls": sets("/srv/out/a", "1"), "salt/config/states/top.sls": "base: {}",
		"hooks/post-release.d/10":    "#!/bin/sh\n",
		"salt/config/pillar/top.sls": "base: {}", "grains/roles.yaml": "a: 1\n", "salt/files/shared": "-> ../../cache",
	})
	l.expect(exit.OK)
	dir, err := filepath.EvalSymlinks(l.Layout.Path("/srv/service/current"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "var/more"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Converge(t.Context(), false); err != nil {
		t.Fatalf("with data that was added: %v", err)
	}
	for name, content := range map[string]string{
		".salt/99.sls": sets("/srv/out/evil", "1"), ".salt/install": "#!/bin/sh\n", "salt/_grains/x.py": "",
		"hooks/pre-release.d/00": "#!/bin/sh\n", "grains/x": "#!/bin/sh\n",
		".salt/00.sls": sets("/srv/out/evil", "1"), "corpus.yaml": "writable: [.]\nwritable_code: true\n",
		"bin/check": "#!/bin/sh\nid\n", "hooks/post-release.d/10": "#!/bin/sh\nid\n",
		"salt/config/pillar/top.sls": "base: {'*': [x]}", "cache/x": "y", "cache/more.sls": "",
	} {
		path := filepath.Join(dir, name)
		before, readErr := os.ReadFile(path)
		_ = os.Remove(path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
			os.WriteFile(path, []byte(content), 0o755)); err != nil {
			t.Fatal(err)
		}
		_, err := l.Converge(t.Context(), false)
		if exit.Code(err) != exit.Refused || !strings.Contains(err.Error(), name) &&
			!strings.Contains(err.Error(), filepath.Dir(name)) {
			t.Errorf("%s was changed: %v", name, err)
		}
		audits, err := l.Verify(t.Context())
		if exit.Code(err) != exit.Refused || len(audits) == 0 || len(audits[len(audits)-1].Changes) == 0 {
			t.Errorf("verify does not report %s: %v", name, err)
		}
		_ = os.Remove(path)
		if readErr == nil {
			mode := os.FileMode(0o444)
			if strings.HasPrefix(string(before), "#!") {
				mode = 0o555
			}
			if err := errors.Join(os.WriteFile(path, before, mode), os.Chmod(path, mode)); err != nil {
				t.Fatal(err)
			}
		} else if filepath.Dir(path) != filepath.Join(dir, "grains") && filepath.Dir(path) != filepath.Join(dir, ".salt") {
			_ = os.Remove(filepath.Dir(path))
		}
	}
	if l.host("/srv/out/evil") != "" {
		t.Error("code that was changed ran")
	}
	// A run that reaches the store restores the release.
	if err := os.WriteFile(filepath.Join(dir, ".salt/99.sls"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	noted(t, l.expect(exit.OK), ".salt/99.sls was added")
	if audits, err := l.Verify(t.Context()); err != nil {
		t.Errorf("after it was fetched again: %v, %+v", err, audits)
	}
}

// TestWritableCodeRequiresRecipeSetting checks that the user may change code if the recipe allows it, and that verify
// reports the change.
func TestWritableCodeRequiresRecipeSetting(t *testing.T) {
	needsRoot(t)
	l := newNativeLab(t)
	files := stateFiles("1", sets("/srv/out/a", "1"))
	files["corpus.yaml"] = "writable: [salt]\nwritable_code: true\n"
	l.repo.Release("myapp", "1", "testing", files)
	l.expect(exit.OK)
	dir := l.Layout.Path("/srv/service/current/salt/config/states")
	if err := os.WriteFile(filepath.Join(dir, "more.sls"), []byte(sets("/srv/out/more", "1")), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "top.sls"), []byte("base: {'*': [more]}"), 0o644); err != nil {
		t.Fatal(err)
	}
	noted(t, l.expect(exit.OK), "which writable_code allows")
	if l.host("/srv/out/more") != "1" {
		t.Error("code that the recipe lets the user change did not run")
	}
	if _, err := l.Verify(t.Context()); exit.Code(err) != exit.Refused {
		t.Errorf("verify does not report the change: %v", err)
	}
}

// TestVerifyListsTemplatesThatRunsRefuse has a release give templates to its user. Its files are unchanged, but runs
// refuse them.
func TestVerifyListsTemplatesThatRunsRefuse(t *testing.T) {
	l := newNativeLab(t)
	files := stateFiles("1", sets("/srv/out/a", "1"))
	files["corpus.yaml"], files["cache/a.j2"] = "writable: [cache]\n", "x"
	files["salt/config/states/unused.sls"] = "/etc/a:\n  file.managed:\n    - source: /srv/service/next/cache/a.j2\n" +
		"    - template: jinja\n"
	l.repo.Release("myapp", "1", "testing", files)
	l.expect(exit.OK)
	audits, err := l.Verify(t.Context())
	want := []string{"salt/config/states/unused.sls:3 /srv/service/next/cache/a.j2"}
	if err != nil || len(audits) != 1 || !slices.Equal(audits[0].Changeable, want) {
		t.Errorf("%+v, %v; want %q", audits, err, want)
	}
}
