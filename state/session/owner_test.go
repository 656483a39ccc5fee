package session_test

import (
	"errors"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
)

const nobody = 65534

// TestGitRunsAsTheOwnerOfAClone checks that the programs that a user's clone configures do not run as root.
func TestGitRunsAsTheOwnerOfAClone(t *testing.T) {
	if _, err := osexec.LookPath("git"); err != nil || os.Geteuid() != 0 {
		t.Skip("this requires root and a git")
	}
	dir := t.TempDir()
	for _, p := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("SUDO_UID", "65534") // as under sudo, where git trusts that user's clones
	git := func(args ...string) {
		t.Helper()
		cmd := osexec.Command("git", args...)
		cmd.Env = append(os.Environ(), "HOME="+dir, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a",
			"GIT_COMMITTER_EMAIL=a@b")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	remote, clone, ran := filepath.Join(dir, "remote"), filepath.Join(dir, "clone"), filepath.Join(dir, "ran")
	git("init", "--quiet", "--initial-branch=master", remote)
	git("-C", remote, "commit", "--quiet", "--allow-empty", "-m", "one")
	git("clone", "--quiet", remote, clone)
	git("-C", remote, "commit", "--quiet", "--allow-empty", "-m", "two")
	hosttest.Put(t, filepath.Join(dir, "evil"), "#!/bin/sh\nid -u >> "+ran+"\n", 0o755)
	hosttest.Put(t, ran, "", 0o666)
	if err := errors.Join(os.Chmod(ran, 0o666), os.Chmod(filepath.Join(dir, "evil"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, hook := range []string{"post-checkout", "post-merge", "reference-transaction"} {
		if err := os.Symlink(filepath.Join(dir, "evil"), filepath.Join(clone, ".git/hooks", hook)); err != nil {
			t.Fatal(err)
		}
	}
	git("-C", clone, "config", "core.fsmonitor", filepath.Join(dir, "evil"))
	for _, tree := range []string{clone, remote} {
		if err := filepath.WalkDir(tree,
			func(p string, _ os.DirEntry,
				err error) error {
				return errors.Join(err, os.Lchown(p, nobody, nobody))
			}); err != nil {
			t.Fatal(err)
		}
	}
	run := func(sls string) *exec.Result {
		hosttest.Put(t, filepath.Join(dir, "states/t.sls"),
			strings.ReplaceAll(strings.ReplaceAll(sls, "REMOTE", "file://"+remote), "CLONE", clone), 0o644)
		h, err := machine.New(host.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return runStates(t, h, filepath.Join(dir, "states"), false)[0]
	}
	for _, sls := range []string{
		"t: {git.config_set: [{name: a.b}, {repo: CLONE}, {value: c}]}",
		"t: {git.latest: [{name: REMOTE}, {target: CLONE}, {rev: master}, {branch: master}]}",
		"t: {git.latest: [{name: REMOTE}, {target: CLONE}, {rev: master}, {https_user: u}, {https_pass: secret}]}",
		"t: {git.latest: [{name: REMOTE}, {target: CLONE}, {rev: master}, {user: daemon}]}",
		"t: {test.nop: [{name: '{{ salt[\"git.revision\"](\"CLONE\") }}'}]}",
	} {
		r := run(sls)
		t.Logf("%s: %v: %s", sls, r.Outcome, r.Comment)
		refused := strings.Contains(sls, "secret") || strings.Contains(sls, "daemon")
		if refused && (r.Outcome != exec.Failed || !strings.Contains(r.Hint, "user: nobody")) {
			t.Errorf("%s: %v: %s, hint %s", sls, r.Outcome, r.Comment, r.Hint)
		}
	}
	data, err := os.ReadFile(ran)
	if err != nil || strings.TrimSpace(strings.ReplaceAll(string(data), "65534\n", "")) != "" {
		t.Errorf("programs of the clone ran as users %q, %v", strings.Fields(string(data)), err)
	}
	if len(data) == 0 {
		t.Error("no program of the clone ran, so the test has no effect")
	}
}
