package undo_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/undo"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
)

// scene is a small host with a journal that is changed by runs and by people.
type scene struct {
	*testing.T
	root    string
	journal journal.Journal
	machine *fakeMachine // nil for the real machine
	stock   *stock       // nil for the package manager of the host, which it lacks

	recorder *journal.Recorder // of the current run
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{T: t, root: t.TempDir(), journal: journal.Journal{Dir: t.TempDir(), Limit: 1 << 20, FileLimit: 1 << 10}}
	hosttest.Tree(t, s.root)
	s.machine = &fakeMachine{scene: s}
	for _, name := range []string{"mount", "umount", "swapon", "swapoff", "modprobe", "sysctl"} {
		hosttest.Put(t, s.path("/usr/sbin/"+name), "", 0o755)
	}
	for _, name := range []string{"self/mounts", "self/mountinfo", "swaps", "modules", "sys/net/ipv4/ip_forward"} {
		hosttest.Put(t, s.path("/proc/"+name), "", 0o644)
	}
	return s
}

func (s *scene) path(name string) string { return filepath.Join(s.root, name) }

func (s *scene) put(name, text string) { hosttest.Put(s, s.path(name), text, 0o644) }

// text returns the content of a file, or "(none)" if it does not exist.
func (s *scene) text(name string) string {
	s.Helper()
	data, err := os.ReadFile(s.path(name))
	if err != nil {
		return "(none)"
	}
	return string(data)
}

func (s *scene) do(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scene) host(r host.ChangeRecorder) *host.Host {
	s.Helper()
	o := host.Options{Recorder: r}
	if s.machine != nil {
		o.Root, o.Commands = s.root, s.machine
	}
	h, err := machine.New(o)
	s.do(err)
	if s.stock != nil {
		h.Packages = s.stock
	}
	return h
}

// run has a run of pair b, after pair a, change the host in a step. With the option "cut", the run ends without
// after-images.
func (s *scene) run(id string, work func(h *host.Host), options ...string) {
	s.Helper()
	r := s.journal.Record(journal.Run{ID: id, Pair: ledger.Key{Bytes: "b"}, Name: "myapp 2", Over: ledger.Key{Bytes: "a"},
		Now: time.Now, Note: s.Logf})
	h := s.host(r)
	r.Bind(h)
	r.Hide(func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") })
	r.Step("some.state of " + id)
	s.recorder = r
	work(h)
	if slices.Contains(options, "cut") {
		s.do(r.Kept())
		return
	}
	s.do(r.Close())
}

// named records in the journal that a subject is about to be changed.
func (s *scene) named(kind host.Kind, name string) {
	s.Helper()
	s.do(s.recorder.Replacing(host.Subject{Kind: kind, Name: name}))
}

// write has a run write a file.
func (s *scene) write(name, text string) func(h *host.Host) {
	return func(h *host.Host) { s.Helper(); s.do(h.WriteText(name, text)) }
}

// plan returns the plan to restore from pair b to pair a.
func (s *scene) plan() (*undo.Plan, *host.Host) {
	s.Helper()
	chapters, err := s.journal.Chapters()
	s.do(err)
	records, short := undo.Select(chapters, undo.Scope{From: ledger.Key{Bytes: "b"}, To: ledger.Key{Bytes: "a"}})
	if short {
		s.Error("the journal lacks the end of pair a")
	}
	h := s.host(nil)
	p, err := undo.NewPlan(context.Background(), h, chapters, records)
	s.do(err)
	return p, h
}

// back restores pair a.
func (s *scene) back() undo.Summary {
	s.Helper()
	p, h := s.plan()
	did, err := undo.Restore(context.Background(), h, s.journal, "back", p)
	s.do(err)
	return did
}

// restoreTwice restores pair a, and checks that a second restore has nothing to do.
func (s *scene) restoreTwice() undo.Summary {
	s.Helper()
	did := s.back()
	if p, _ := s.plan(); !p.Done() || !p.Summary().Empty() {
		s.Errorf("a second restore would do %+v", p.Summary())
	}
	return did
}

// expect compares the summary of a restore.
func (s *scene) expect(did undo.Summary, restored []string, left ...string) {
	s.Helper()
	if !slices.Equal(did.Restored, restored) {
		s.Errorf("the restored subjects are %q, want %q", did.Restored, restored)
	}
	if len(did.Left) != len(left) {
		s.Errorf("the subjects left are %q, want %q", did.Left, left)
		return
	}
	for i, want := range left {
		if !strings.Contains(did.Left[i].String(), want) {
			s.Errorf("the subject left is %q, want %q", did.Left[i], want)
		}
	}
	if len(did.Failed) > 0 {
		s.Errorf("failed: %q", did.Failed)
	}
}

// fakeMachine simulates the tools that change the running system, and the kernel's files about it.
type fakeMachine struct {
	scene *scene
	ran   []string
	fail  string // the start of a command that fails
}

func (m *fakeMachine) Allowed(string) error { return nil }

func (m *fakeMachine) Run(_ context.Context, c host.Command) (host.Output, error) {
	name, args := filepath.Base(c.Argv[0]), c.Argv[1:]
	line := name + " " + strings.Join(args, " ")
	if !c.Quiet {
		m.ran = append(m.ran, line)
	}
	if m.fail != "" && strings.HasPrefix(line, m.fail) {
		return host.Output{Code: 1, Stderr: "it does not want to"}, nil
	}
	last := args[len(args)-1]
	switch name {
	case "mount":
		m.mount(args)
	case "umount":
		m.without("/proc/self/mounts", 1, last)
		m.without("/proc/self/mountinfo", 4, last)
	case "swapon":
		m.add("/proc/swaps", last+" file 1024 0 -2")
	case "swapoff":
		m.without("/proc/swaps", 0, last)
	case "modprobe":
		m.without("/proc/modules", 0, last)
		if !slices.Contains(args, "-r") {
			m.add("/proc/modules", last+" 1 0")
		}
	case "sysctl":
		key, text, _ := strings.Cut(last, "=")
		m.scene.put("/proc/sys/"+strings.ReplaceAll(key, ".", "/"), text+"\n")
	default:
		return m.script(name, last), nil
	}
	return host.Output{}, nil
}

// mount simulates mount -t TYPE -o OPTIONS -- DEVICE PLACE, with remount or bind among the options.
func (m *fakeMachine) mount(args []string) {
	place, device := args[len(args)-1], args[len(args)-2]
	value := func(flag string) string {
		if i := slices.Index(args, flag); i >= 0 {
			return args[i+1]
		}
		return ""
	}
	fstype, root, opts := value("-t"), "/", value("-o")
	switch rest, again := strings.CutPrefix(opts, "remount,"); {
	case again:
		opts = rest
	case strings.Contains(","+opts+",", ",bind,"):
		device, fstype, root, opts = "/dev/root", "ext4", device, "rw"
	}
	m.without("/proc/self/mounts", 1, place)
	m.without("/proc/self/mountinfo", 4, place)
	m.add("/proc/self/mounts", fmt.Sprintf("%s %s %s %s 0 0", device, place, fstype, opts))
	m.add("/proc/self/mountinfo", fmt.Sprintf("9 1 8:1 %s %s %s - %s %s rw", root, place, opts, fstype, device))
}

// script simulates init scripts, whose state is in /run.
func (m *fakeMachine) script(name, verb string) host.Output {
	file := m.scene.path("/run/" + name)
	switch verb {
	case "start", "restart":
		m.scene.put("/run/"+name, "")
	case "stop":
		_ = os.Remove(file) // the file may not exist
	case "status":
		if _, err := os.Stat(file); err != nil {
			return host.Output{Code: 3}
		}
	}
	return host.Output{}
}

func (m *fakeMachine) add(file, line string) { m.scene.put(file, m.scene.text(file)+line+"\n") }

func (m *fakeMachine) line(file string, field int, is string) string {
	for line := range strings.Lines(m.scene.text(file)) {
		if strings.Fields(line)[field] == is {
			return line
		}
	}
	return ""
}

func (m *fakeMachine) without(file string, field int, is string) {
	if line := m.line(file, field, is); line != "" {
		m.scene.put(file, strings.Replace(m.scene.text(file), line, "", 1))
	}
}
