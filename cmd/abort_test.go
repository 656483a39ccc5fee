package cmd_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
)

// rollingBack is a host that rolls back from a release of an aborted rollout, which changed manyFiles files.
type rollingBack struct {
	*manyRoots
	old string // a file of the host that the release removes
}

// manyRoots has hosts below one directory, and a store from which they deploy.
type manyRoots struct {
	t     *testing.T
	r     *reader
	roots string
}

const manyFiles = 40

// TestKilledHostRollsBackAnAbortedRollout has a real agent deploy a release that another host halts, and kills it
// with SIGKILL during its rollback after the rollout was aborted. The next run completes the rollback: every file has
// its content from before the release, the files that the release made are removed, and a file that it removed exists
// again.
func TestKilledHostRollsBackAnAbortedRollout(t *testing.T) {
	artifacttest.Long(t)
	w := newRollingBack(t)
	for round, after := range []int{0, 1, manyFiles / 2, manyFiles - 1} {
		w.r.must("corpus point myapp production 2.0")
		w.deploy("one", 0)
		w.holds("2", false)
		if round == 0 {
			w.deploy("two", 7)
			w.deploy("one", 0)
			if out := w.r.must("corpus rollout status myapp production"); !strings.Contains(out, "rollout of 2.0 is halted") {
				t.Errorf("no host halted the rollout: %s", out)
			}
		}
		w.r.must("corpus rollout abort myapp production --by anna@example.com")
		w.killed(after)
		w.deploy("one", 0)
		w.holds("1", true)
		if out := w.deploy("one", 0); strings.Contains(out, "aborted") {
			t.Errorf("the host rolls back again: %s", out)
		}
	}
}

func newRollingBack(t *testing.T) rollingBack {
	t.Helper()
	m := &manyRoots{t: t, r: newReader(t), roots: t.TempDir()}
	w := rollingBack{m, filepath.Join(m.roots, "myapp-production-useast1-1/etc/old.conf")}
	m.r.must("corpus keys new", "corpus store init")
	for i, name := range []string{"one", "two"} {
		m.write(filepath.Join(m.root(name), "etc/hostname"), fmt.Sprintf("myapp-production-useast1-%d\n", i+1))
		m.write(filepath.Join(m.root(name), "etc/old.conf"), "of the host\n")
	}
	m.write(filepath.Join(m.root("two"), "etc/bad"), "")
	m.publish("1", "")
	m.deploy("one", 0)
	m.deploy("two", 0)
	m.r.must("corpus project rollout myapp production --agent dev --waves 100% --halt-at 1 --at-once 100%")
	m.publish("2", "/etc/new.conf:\n  file.managed: [{contents: new}]\n/etc/old.conf:\n  file.absent: []\n"+
		"bad:\n  file.missing: [{name: /etc/bad}]\n")
	return w
}

func (m *manyRoots) root(name string) string {
	number := map[string]string{"one": "1", "two": "2"}[name]
	return filepath.Join(m.roots, "myapp-production-useast1-"+number)
}

func (m *manyRoots) write(file, text string) {
	m.t.Helper()
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, []byte(text), 0o644)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// publish publishes a version, and points the channel at it unless that would start a rollout.
func (m *manyRoots) publish(version, more string) {
	m.t.Helper()
	tree := filepath.Join(m.r.dir, "tree-"+version)
	m.write(tree+"/corpus.yaml", "name: myapp\n")
	m.write(tree+"/salt/config/states/top.sls", "base: {'*': [app]}\n")
	var states strings.Builder
	for i := range manyFiles {
		fmt.Fprintf(&states, "/etc/app/%d.conf:\n  file.managed: [{contents: '%s', makedirs: true}]\n", i, version)
	}
	m.write(tree+"/salt/config/states/app.sls", states.String()+more)
	channel := ""
	if more == "" {
		channel = " --channel production"
	}
	m.r.must("corpus build "+tree+" -o "+version+".tar.zst",
		"corpus publish myapp "+version+".0 "+version+".tar.zst"+channel)
}

func (m *manyRoots) agent(name string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(bin(m.t), "corpus-agent"), "deploy", "--store", m.r.store, "--trust-root",
		"root.json")
	cmd.Dir, cmd.Env = m.r.dir, append(m.r.env[:len(m.r.env):len(m.r.env)], "CORPUS_ROOT="+m.root(name))
	return cmd
}

func (m *manyRoots) deploy(name string, code int) string {
	m.t.Helper()
	cmd := m.agent(name)
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) || cmd.ProcessState.ExitCode() != code {
		m.t.Fatalf("%s: exit code %d, want %d (%v): %s", name, cmd.ProcessState.ExitCode(), code, err, out)
	}
	return string(out)
}

// back returns the number of files with the content of the previous version.
func (m *manyRoots) back() (n int) {
	for i := range manyFiles {
		data, _ := os.ReadFile(filepath.Join(m.root("one"), "etc/app", strconv.Itoa(i)+".conf"))
		if strings.TrimSpace(string(data)) == "1" {
			n++
		}
	}
	return n
}

// killed starts a run of the host and kills it when more than so many files are restored.
func (w rollingBack) killed(after int) {
	w.t.Helper()
	cmd := w.agent("one")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for w.back() <= after {
		select {
		case <-ended:
			w.t.Logf("the run ended before it was killed, with %d of %d files restored", w.back(), manyFiles)
			return
		case <-time.After(200 * time.Microsecond):
		}
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	<-ended
	w.t.Logf("killed with %d of %d files restored", w.back(), manyFiles)
}

// holds checks every file that the releases change.
func (w rollingBack) holds(version string, old bool) {
	w.t.Helper()
	back := w.back()
	if want := map[string]int{"1": manyFiles, "2": 0}[version]; back != want {
		w.t.Errorf("%d of %d files have the content of version 1, want %d", back, manyFiles, want)
	}
	if _, err := os.Stat(filepath.Join(w.root("one"), "etc/new.conf")); errors.Is(err, os.ErrNotExist) != old {
		w.t.Errorf("the file that 2.0 makes: %v", err)
	}
	if data, err := os.ReadFile(w.old); errors.Is(err, os.ErrNotExist) == old || old && string(data) != "of the host\n" {
		w.t.Errorf("the file that 2.0 removes: %q, %v", data, err)
	}
	if link, err := os.Readlink(filepath.Join(w.root("one"), "srv/service/current")); err != nil ||
		!strings.Contains(link, version+".0") {
		w.t.Errorf("current leads to %s (%v), want %s.0", link, err, version)
	}
}
