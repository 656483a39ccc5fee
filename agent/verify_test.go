package agent_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// TestVerifyDuringIncompleteRefresh has metadata of which only some files are refreshed.
func TestVerifyDuringIncompleteRefresh(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.publishBase("1")
	l.repo.Release("myapp", "1", "testing", large("1"))
	l.expect(exit.OK)
	before := t.TempDir()
	if err := os.CopyFS(before, os.DirFS(l.Layout.Trust())); err != nil {
		t.Fatal(err)
	}
	l.repo.Release("myapp", "2", "testing", large("2"))
	l.publishBase("2")
	l.expect(exit.OK)
	for _, old := range []string{"snapshot.json", "targets.json", "projects/myapp.json"} {
		data, err := os.ReadFile(filepath.Join(before, old))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(l.Layout.Trust(), old), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Verify(t.Context()); err != nil {
			t.Errorf("with the earlier %s: %v", old, err)
		}
	}
	other := newLab(t)
	other.repo.Release("myapp", "1", "testing", large("1"))
	other.expect(exit.OK)
	data, err := os.ReadFile(filepath.Join(other.Layout.Trust(), "projects/myapp.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(l.Layout.Trust(), "projects/myapp.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Verify(t.Context()); exit.Code(err) != exit.Refused {
		t.Errorf("with a signature of another key: %v, want it refused", err)
	}
}

func TestVerifyListsChangedFiles(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	files := large("1")
	files["corpus.yaml"] = "writable: [cache]\n"
	files["cache/entry"] = "x"
	l.repo.Release("myapp", "1", "testing", files)
	l.expect(exit.OK)
	dir := l.Layout.Path("/srv/service/current")
	changes := map[string]func(name string) error{
		"data/large":  func(n string) error { return replaceByte(n) },
		"data/other":  func(n string) error { return errors.Join(os.Chmod(n, 0o644), os.Truncate(n, 5), os.Chmod(n, 0o444)) },
		"bin/run":     func(n string) error { return os.Chmod(n, 0o755) },
		"empty":       os.Remove,
		"bin/added":   func(n string) error { return os.WriteFile(n, []byte("x"), 0o644) },
		"cache/entry": func(n string) error { return os.WriteFile(n, []byte("may change"), 0o644) },
		"cache/more":  func(n string) error { return os.WriteFile(n, []byte("may come"), 0o644) },
		"salt":        func(n string) error { return os.Chmod(n, 0o777) },
		".":           func(n string) error { return os.Chmod(n, 0o777) },
		"salt/config/states/top.sls": func(n string) error {
			return errors.Join(os.Chmod(n, 0o644), os.WriteFile(n, []byte("BASE: {}"), 0o644))
		},
	}
	if _, err := l.Verify(t.Context()); err != nil {
		t.Fatalf("before any change: %v", err)
	}
	for name, apply := range changes {
		if err := apply(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	audits, err := l.Verify(t.Context())
	if exit.Code(err) != exit.Refused {
		t.Errorf("error is %v, want exit code %d", err, exit.Refused)
	}
	var named []string
	for _, c := range audits[0].Changes {
		named = append(named, c.Name+" "+c.What)
		if c.Changed.IsZero() || (c.Owner == "") != (c.Name == "empty") {
			t.Errorf("%s: owner %q, changed %s", c.Name, c.Owner, c.Changed)
		}
	}
	if want := []string{
		". has mode 0777", "bin/added was added", "bin/run has mode 0755", "data/large has other content",
		"data/other has 5 bytes, not 1048576",
		"empty is missing", "salt has mode 0777", "salt/config/states/top.sls has mode 0644 and has other content",
	}; !slices.Equal(named, want) {
		t.Errorf("verify reports %q, want %q", named, want)
	}
	// A list that was changed with the files is not the signed one.
	lists, err := filepath.Glob(filepath.Join(l.Layout.Trees("myapp"), "*"))
	if err != nil || len(lists) != 1 {
		t.Fatalf("lists are %v, %v", lists, err)
	}
	if err := replaceByte(lists[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Verify(t.Context()); exit.Code(err) != exit.Refused {
		t.Errorf("with a forged list: %v, want exit code %d", err, exit.Refused)
	}
}

// TestVerifyNamesTheRunOfAChange has a state write into the release, and then another program.
func TestVerifyNamesTheRunOfAChange(t *testing.T) {
	l := newNativeLab(t)
	files := stateFiles("1", "/srv/service/current/app.conf:\n  file.managed:\n    - contents: by a state\n")
	files["app.conf"], files["other.conf"] = "as published\n", "as published\n"
	l.repo.Release("myapp", "1", "testing", files)
	r := l.expect(exit.OK)
	l.expect(exit.OK)
	other := l.Layout.Path("/srv/service/current/other.conf")
	if err := replaceByte(other); err != nil {
		t.Fatal(err)
	}
	audits, err := l.Verify(t.Context())
	if exit.Code(err) != exit.Refused || len(audits) != 1 || len(audits[0].Changes) != 2 {
		t.Fatalf("verify reports %+v, %v", audits, err)
	}
	state, person := audits[0].Changes[0], audits[0].Changes[1]
	if !strings.Contains(state.By, "file.managed") || !strings.Contains(state.By, r.ID) || person.By != "" {
		t.Errorf("changes are %+v, want the first by run %s and the second without a run", audits[0].Changes, r.ID)
	}
}

func replaceByte(name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	data[len(data)/2]++
	if err := os.Chmod(name, 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		return err
	}
	return os.Chmod(name, 0o444)
}

// TestVerifyNamesWhoMayChangeAFile gives another user access to files of a release, by owner and by an access control
// list, and gives a program privileges. Data is checked like code.
func TestVerifyNamesWhoMayChangeAFile(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it gives files to other users")
	}
	t.Parallel()
	l := newLab(t)
	files := large("1")
	files["corpus.yaml"] = "writable: [cache]\n"
	files["cache/entry"] = "x"
	l.repo.Release("myapp", "1", "testing", files)
	l.expect(exit.OK)
	dir, err := filepath.EvalSymlinks(l.Layout.Path("/srv/service/current"))
	must(t, err)
	acl := artifacttest.ACL(4711, 6, artifacttest.Rights{Owner: 4, Group: 4, Other: 4})
	if err := unix.Setxattr(filepath.Join(dir, "data/other"), "system.posix_acl_access", acl, 0); err != nil {
		t.Skipf("access control lists: %v", err)
	}
	may := make([]byte, 20) // CAP_NET_BIND_SERVICE, effective
	binary.LittleEndian.PutUint32(may, 0x02000001)
	binary.LittleEndian.PutUint32(may[4:], 1<<10)
	if err := unix.Setxattr(filepath.Join(dir, "bin/run"), "security.capability", may, 0); err != nil {
		t.Skipf("capabilities: %v", err)
	}
	must(t, os.Lchown(filepath.Join(dir, "data/large"), 4711, 4711))
	must(t, os.Chown(filepath.Join(dir, "cache/entry"), 4711, 4711))
	audits, err := l.Verify(t.Context())
	if exit.Code(err) != exit.Refused {
		t.Errorf("error is %v, want exit code %d", err, exit.Refused)
	}
	var named []string
	for _, c := range audits[0].Changes {
		named = append(named, c.Name+" "+c.What)
	}
	want := []string{"bin/run has capabilities (setcap), which unpacking never gives",
		"data/large belongs to user 4711, who can change it", "data/other has mode 0464"}
	if !slices.Equal(named, want) {
		t.Errorf("verify reports %q, want %q", named, want)
	}
	// A run gives the data to root. A program with capabilities counts as changed, and a failed converge fetches it
	// again.
	l.engine.fails = func(string) error {
		if _, err := unix.Getxattr(filepath.Join(dir, "bin/run"), "security.capability", nil); err == nil {
			return exit.WithCode(exit.Failed, errors.New("start of myapp.service failed"))
		}
		return nil
	}
	noted(t, l.expect(exit.OK), "has capabilities")
	if audits, err := l.Verify(t.Context()); err != nil {
		t.Errorf("after a run, verify reports %+v, %v", audits, err)
	}
}

// TestVerifyOfAPush checks that the hint has a command that deploys an unsigned release, which is not in the store.
func TestVerifyOfAPush(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for local, want := range map[string]string{"": "run `corpus-agent deploy`",
		"push": "`corpus-agent project deploy shop`"} {
		_, err := l.AuditRelease(t.Context(), artifact.Release{Project: "shop", Version: "1", Local: local})
		if exit.Code(err) != exit.Refused || !strings.Contains(diag.HintOf(err), want) {
			t.Errorf("a release from %q: %v (hint: %s), want %q", local, err, diag.HintOf(err), want)
		}
	}
}
