package host_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/accounts"
	"github.com/corpus-agent/corpus-agent/state/host/binding"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
)

// eventLog records events in their order: subjects, waits, and commands.
type eventLog struct {
	events []string
	refuse bool
}

func (o *eventLog) Replacing(s host.Subject) error {
	o.events = append(o.events, "named "+s.String())
	return nil
}

func (o *eventLog) Kept() error {
	o.events = append(o.events, "kept")
	if o.refuse {
		return errors.New("the disk is full")
	}
	return nil
}

func (o *eventLog) Allowed(string) error { return nil }

func (o *eventLog) Run(_ context.Context, c host.Command) (host.Output, error) {
	if !c.Quiet {
		o.events = append(o.events, "ran "+filepath.Base(c.Argv[0]))
	}
	if strings.Contains(strings.Join(c.Argv, " "), "--simulate") {
		return host.Output{Stdout: "Inst foo (1.0 localhost [all])\n"}, nil
	}
	return host.Output{}, nil
}

// recordedHost returns a small host whose commands only record that they ran.
func recordedHost(t *testing.T, o *eventLog) (*host.Host, string) {
	t.Helper()
	root := t.TempDir()
	hosttest.Tree(t, root)
	for _, name := range []string{"useradd", "usermod", "userdel", "groupadd", "groupmod", "groupdel", "gpasswd", "chage",
		"chpasswd", "passwd", "crontab", "sysctl"} {
		hosttest.Put(t, filepath.Join(root, "usr/sbin", name), "", 0o755)
	}
	hosttest.Put(t, filepath.Join(root, "usr/bin/apt-get"), "", 0o755)
	hosttest.Put(t, filepath.Join(root, "var/lib/dpkg/status"), "", 0o644)
	hosttest.Put(t, filepath.Join(root, "etc/init.d/web"), "", 0o755)
	hosttest.Put(t, filepath.Join(root, "etc/file"), "old", 0o644)
	hosttest.Put(t, filepath.Join(root, "etc/dir/inside"), "old", 0o644)
	h, err := machine.New(host.Options{Root: root, Commands: o, Recorder: o})
	must(t, err)
	o.events = nil
	return h, root
}

// writes returns all methods of a host that change something, by interface and name, with the subjects that they record
// first.
func writes() map[string]map[string]struct {
	named string
	call  func(h *host.Host) error
} {
	ctx := context.Background()
	text := func() host.NewFile { return host.NewFile{Content: strings.NewReader("new"), UID: -1, GID: -1} }
	id := 7
	now := time.Now()
	type write = struct {
		named string
		call  func(h *host.Host) error
	}
	return map[string]map[string]write{
		"Files": {
			"Write":     {"file /etc/file", func(h *host.Host) error { return h.Files.Write("/etc/file", text()) }},
			"Mkdir":     {"file /etc/new", func(h *host.Host) error { return h.Files.Mkdir("/etc/new", 0o755) }},
			"Symlink":   {"file /etc/link", func(h *host.Host) error { return h.Files.Symlink("file", "/etc/link") }},
			"Link":      {"file /etc/hard", func(h *host.Host) error { return h.Files.Link("/etc/file", "/etc/hard") }},
			"Rename":    {"file /etc/file", func(h *host.Host) error { return h.Files.Rename("/etc/file", "/etc/moved") }},
			"Remove":    {"file /etc/file", func(h *host.Host) error { return h.Files.Remove("/etc/file") }},
			"RemoveAll": {"file /etc/dir/inside", func(h *host.Host) error { return h.Files.RemoveAll("/etc/dir") }},
			"Chmod":     {"file /etc/file", func(h *host.Host) error { return h.Files.Chmod("/etc/file", 0o600) }},
			"Chown":     {"file /etc/file", func(h *host.Host) error { return h.Files.Chown("/etc/file", -1, -1) }},
			"Own":       {"file /etc/file", func(h *host.Host) error { return h.Files.Own("/etc/file", -1, -1, nil) }},
			"Chtimes":   {"file /etc/file", func(h *host.Host) error { return h.Files.Chtimes("/etc/file", now, now) }},
			"SetAttributes": {"file /etc/file", func(h *host.Host) error {
				return h.Files.SetAttributes("/etc/file", nil)
			}},
		},
		"Commands": {
			"Run": {"command touch", func(h *host.Host) error {
				_, err := h.Commands.Run(host.Applying(ctx), host.Command{Argv: []string{"/bin/touch", "--password=hunter2"}})
				return err
			}},
		},
		"Accounts": {
			"AddUser": {"user bob", func(h *host.Host) error { return h.Accounts.AddUser(ctx, host.NewUser{Name: "bob"}) }},
			"ChangeUser": {"user alice", func(h *host.Host) error {
				return h.Accounts.ChangeUser(ctx, "alice", host.UserChange{UID: &id})
			}},
			"RemoveUser": {"user alice", func(h *host.Host) error {
				return h.Accounts.RemoveUser(ctx, "alice", host.UserRemoval{})
			}},
			"SetShadow": {"user alice", func(h *host.Host) error {
				return h.Accounts.SetShadow(ctx, "alice", host.ShadowChange{Min: &id})
			}},
			"AddGroup": {"group crew", func(h *host.Host) error {
				return h.Accounts.AddGroup(ctx, host.NewGroup{Name: "crew"})
			}},
			"ChangeGroup": {"group adm", func(h *host.Host) error {
				return h.Accounts.ChangeGroup(ctx, "adm", host.GroupChange{GID: &id})
			}},
			"RemoveGroup": {"group adm", func(h *host.Host) error { return h.Accounts.RemoveGroup(ctx, "adm") }},
		},
		"Crontabs": {
			"Write": {"file /var/spool/cron/crontabs/alice", func(h *host.Host) error {
				return h.Crontabs.Write(ctx, "alice", "")
			}},
		},
		"Packages": {
			"Do": {"package foo", func(h *host.Host) error {
				return h.Packages.Do(ctx, host.Transaction{Packages: []host.Wanted{{Name: "foo"}}})
			}},
			"Hold": {"package foo", func(h *host.Host) error { return h.Packages.Hold(ctx, []string{"foo"}, true) }},
		},
		"Units": {
			"Act": {"unit web.service", func(h *host.Host) error { return h.Units.Act(ctx, host.Restart, "web", true) }},
			"SetBoot": {"unit at boot web.service", func(h *host.Host) error {
				return h.Units.SetBoot(ctx, host.Enable, "web", false)
			}},
		},
		"Kernel": {
			"SetHostname": {"hostname of the running system", func(h *host.Host) error {
				return h.Kernel.SetHostname("other")
			}},
			"Bind": {"command mount of /s at /a", func(h *host.Host) error {
				return h.Kernel.Bind(binding.Binding{Source: "/s", At: "/a"})
			}},
			"Unbind": {"command mount of /a", func(h *host.Host) error { return h.Kernel.Unbind("/a") }},
		},
	}
}

// reads returns the methods that change nothing: those that read, the refresh of indexes, which are copies of data of
// the repositories, and what the agent keeps for itself.
func reads() map[string][]string {
	return map[string][]string{
		"Files": {"Stat", "Lstat", "Readlink", "Resolve", "ReadFile", "Open", "ReadDir", "Beneath", "Attributes",
			"CanChown", "Umask"},
		"Commands": {"Allowed"},
		"Accounts": {"Allowed", "User", "UserByID", "Group", "GroupByID", "GroupsOf", "AllUsers", "AllGroups", "Shadow",
			"PlanUser", "PlanGroup"},
		"Crontabs": {"Allowed", "Read"},
		"Packages": {"Allowed", "Family", "Compare", "Describe", "Installed", "Offers", "Names", "Fresh", "Refresh",
			"Outage", "Plan", "Cached"},
		"Units":  {"Allowed", "AllowedAtBoot", "Unit", "Names", "Stays"},
		"Kernel": {"Allowed", "Hostname", "Bound"},
		"Kept":   {"Read", "Write"},
	}
}

// TestEveryMethodIsClassified fails for a method that is in neither list: it must be added to the writes, which are
// tested to record their subjects, or to the reads.
func TestEveryMethodIsClassified(t *testing.T) {
	interfaces := map[string]reflect.Type{
		"Files": reflect.TypeFor[host.Files](), "Commands": reflect.TypeFor[host.Commands](),
		"Accounts": reflect.TypeFor[host.Accounts](),
		"Crontabs": reflect.TypeFor[host.Crontabs](), "Packages": reflect.TypeFor[host.Packages](),
		"Units":  reflect.TypeFor[host.Units](),
		"Kernel": reflect.TypeFor[host.Kernel](),
		"Kept":   reflect.TypeFor[host.Kept](),
	}
	for name, iface := range interfaces {
		for i := range iface.NumMethod() {
			method := iface.Method(i).Name
			if _, write := writes()[name][method]; write == slices.Contains(reads()[name], method) {
				t.Errorf("%s.%s must be in exactly one of writes and reads", name, method)
			}
		}
	}
	all := reflect.TypeFor[host.Host]()
	for i := range all.NumField() {
		f := all.Field(i)
		if f.IsExported() && f.Type.Kind() == reflect.Interface && interfaces[f.Name] == nil {
			t.Errorf("the interface %s is not tested", f.Name)
		}
	}
}

func TestEveryWriteNamesItsSubjectAndWaits(t *testing.T) {
	for iface, methods := range writes() {
		for method, w := range methods {
			t.Run(iface+"."+method, func(t *testing.T) {
				o := &eventLog{refuse: iface == "Kernel"} // the host has the kernel of this machine
				h, _ := recordedHost(t, o)
				if err := w.call(h); (err != nil) != o.refuse {
					t.Fatal(err)
				}
				named, kept := slices.Index(o.events, "named "+w.named), slices.Index(o.events, "kept")
				ran := slices.IndexFunc(o.events, func(e string) bool { return strings.HasPrefix(e, "ran ") })
				if w.named == "command touch" {
					kept = named // a command cannot be undone, so it does not wait
				}
				if named < 0 || kept < named || ran >= 0 && ran < kept {
					t.Errorf("the events are %q; want %q named, then kept, and then a command", o.events, w.named)
				}
				if strings.Contains(strings.Join(o.events, " "), "hunter2") {
					t.Error("an argument of a command was recorded")
				}
			})
		}
	}
}

func TestFailedRecordingPreventsChange(t *testing.T) {
	all := writes()
	delete(all, "Commands") // before-images of commands do not exist
	for iface, methods := range all {
		for method, w := range methods {
			t.Run(iface+"."+method, func(t *testing.T) {
				o := &eventLog{refuse: true}
				h, root := recordedHost(t, o)
				if err := w.call(h); err == nil {
					t.Error("the method has no error")
				}
				for _, e := range o.events {
					if strings.HasPrefix(e, "ran ") {
						t.Errorf("despite the error it %s", e)
					}
				}
				data, err := os.ReadFile(filepath.Join(root, "etc/file"))
				if err != nil || string(data) != "old" {
					t.Errorf("the file holds %q, %v", data, err)
				}
				if _, err := os.Stat(filepath.Join(root, "etc/dir/inside")); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestAccountLinesAreRestoredInPlace(t *testing.T) {
	h, root := recordedHost(t, &eventLog{})
	ctx := context.Background()
	passwd := filepath.Join(root, "etc/passwd")
	before, err := os.ReadFile(passwd)
	must(t, err)
	line, err := accounts.LineOf(h, "/etc/passwd", "daemon")
	must(t, err)
	if line.After != "root" || !strings.HasPrefix(line.Text, "daemon:x:1:1:") {
		t.Errorf("the line is %+v", line)
	}
	must(t, accounts.SetLine(ctx, h, "/etc/passwd", "daemon", accounts.Line{}))
	if data, _ := os.ReadFile(passwd); strings.Contains(string(data), "daemon:") {
		t.Errorf("the line is still there: %s", data)
	}
	must(t, accounts.SetLine(ctx, h, "/etc/passwd", "daemon", line))
	if data, _ := os.ReadFile(passwd); string(data) != string(before) {
		t.Errorf("after the line is restored the file is\n%s\nwant\n%s", data, before)
	}
}
