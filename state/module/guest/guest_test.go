package guest_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/guest"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

const (
	idA = "0123456789abcdef0123456789abcdef"
	idB = "fedcba9876543210fedcba9876543210"
)

// image writes a tar archive of a root file system.
func image(t *testing.T, h *statetest.Host, links map[string]string) {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(header tar.Header, text string) {
		header.Size = int64(len(text))
		if err := w.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	add(tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755}, "")
	for name, target := range links {
		add(tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target, Mode: 0o777}, "")
	}
	if links["etc"] == "" {
		add(tar.Header{Name: "etc/", Typeflag: tar.TypeDir, Mode: 0o755}, "")
		add(tar.Header{Name: "etc/os-release", Typeflag: tar.TypeReg, Mode: 0o644}, "ID=debian\n")
		add(tar.Header{Name: "etc/machine-id", Typeflag: tar.TypeReg, Mode: 0o644}, idA+"\n")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	h.Put("/image.tar", b.String())
}

// real returns a program of the machine, whose absolute paths are on the host.
func real(h *statetest.Host, name string) statetest.Tool {
	return func(args []string, _ string) (string, error) {
		for i, arg := range args {
			if path.IsAbs(arg) {
				args[i] = h.Dir + arg
			}
		}
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			return "", statetest.Code{Code: 2, Text: string(out)}
		}
		return string(out), nil
	}
}

// nodeTools returns the programs of a node. Those of files are those of the machine.
func nodeTools(h *statetest.Host) map[string]statetest.Tool {
	tools := map[string]statetest.Tool{
		"chown": func([]string, string) (string, error) { return "", nil },
		"chmod": func([]string, string) (string, error) { return "", nil },
		"systemctl": func(args []string, _ string) (string, error) {
			root, is := strings.CutPrefix(args[0], "--root=")
			if !is || args[1] != "enable" {
				return "", statetest.Code{Code: 1, Text: "unexpected"}
			}
			if !strings.Contains(h.Text(root+"/etc/corpus/agent.yaml"), "store") { // units may be among the copies
				return "", statetest.Code{Code: 1, Text: "the files of the guest are missing"}
			}
			return "", h.WriteText(root+"/enabled-"+args[2], "")
		}}
	for _, name := range []string{"tar", "rm", "find", "sync", "du", "tail"} {
		tools[name] = real(h, name)
	}
	return tools
}

// node adds the programs of a node to a host, and an image.
func node(t *testing.T, h *statetest.Host) {
	statetest.UseUnits(h)
	statetest.UseTools(t, h, nodeTools(h))
	image(t, h, nil)
	h.Put("/usr/bin/corpus-agent", "a program")
}

func web1(driver string) *value.Map {
	return value.NewMap("name", "web1", "id", idA, "image", "/image.tar", "hostname", "shop-prod-eu1-web1", "driver",
		driver,
		"bridge", "guests", "uids", 8*65536, "copies", value.NewMap("/usr/bin/corpus-agent", "/usr/bin/corpus-agent"),
		"contents", value.NewMap("/etc/corpus/agent.yaml", "store: x\n"), "enable", value.NewList("corpus-agent.timer"),
		"binds", value.NewMap("/var/lib/corpus-guests/web1", "/etc/corpus-node"))
}

// archive is the file in which the disk of web1 comes from another node.
const archive = "/var/lib/machines/web1-" + idB + ".tar"

// moved returns the arguments of web1 on the node that it has moved to.
func moved(driver string) *value.Map {
	args := web1(driver)
	args.Set("image", archive)
	args.Set("disk", idB)
	args.Set("moved", true)
	return args
}

// arrive puts the archive of a disk there, as a person copies it.
func arrive(t *testing.T, h *statetest.Host) {
	t.Helper()
	if err := os.MkdirAll(h.Dir+"/var/lib/machines", 0o700); err != nil {
		t.Fatal(err)
	}
	h.Put(archive, h.Text("/image.tar"))
}

// unitOf returns the unit of web1.
func unitOf(driver string) string {
	return map[string]string{"nspawn": "systemd-nspawn@web1.service", "lxc": "corpus-lxc@web1.service"}[driver]
}

// settingsOf returns the files with the settings of web1 on a node that has no other guests.
func settingsOf(driver string) string {
	return map[string]string{"nspawn": "/etc/systemd/nspawn/web1.nspawn",
		"lxc": "/etc/systemd/system/corpus-lxc@.service, /var/lib/lxc/web1/config"}[driver]
}

// drivers returns all drivers: every one passes the same tests.
func drivers() []string { return cloud.Drivers() }

func TestConformance(t *testing.T) {
	cases := []statetest.Case{
		{Name: "a cloud without contradictions", Function: "checked",
			Arguments: value.NewMap("name", "cloud", "data", "form: 1\n"), First: &statetest.Want{Result: true}},
		{Name: "a guest without a node", Function: "checked", Arguments: value.NewMap("name", "cloud", "data",
			`{"form": 1, "guests": {"a": {"node": "n", "project": "p", "env": "dev", "image": "i", "size": "5GiB"}}}`),
			First: &statetest.Want{Result: false, Comment: "there is no node n"}},
	}
	for _, driver := range drivers() {
		cases = append(cases,
			statetest.Case{Name: driver + " makes a guest", Function: "present", Arguments: web1(driver),
				First: &statetest.Want{Result: true, Changes: value.NewMap("guest", "created from /image.tar", "settings",
					settingsOf(driver))},
				After: statetest.Tree{
					"/var/lib/machines/web1/etc/machine-id":        statetest.File(idA + "\n"),
					"/var/lib/machines/web1/etc/hostname":          statetest.File("shop-prod-eu1-web1\n"),
					"/var/lib/machines/web1/etc/os-release":        statetest.File("ID=debian\n"),
					"/var/lib/machines/web1/etc/corpus/agent.yaml": statetest.File("store: x\n"),
					"/var/lib/machines/web1/usr/bin/corpus-agent":  statetest.File("a program"),
				}},
			statetest.Case{Name: driver + " refuses a name", Function: "present",
				Arguments: value.NewMap("name", "../x", "id", idA, "image", "/image.tar", "hostname", "x", "uids", 8*65536,
					"driver", driver),
				First: &statetest.Want{Result: false, Comment: "is not the name of a guest"}},
			statetest.Case{Name: driver + " refuses users of the node", Function: "present",
				Arguments: value.NewMap("name", "x", "id", idA, "image", "/image.tar", "hostname", "x", "uids", 0, "driver",
					driver),
				First: &statetest.Want{Result: false, Comment: "uids is 0"}},
			statetest.Case{Name: driver + " takes no directory that is another's", Function: "present", Arguments: web1(driver),
				Setup: func(_ *testing.T, h *statetest.Host) { h.Put("/var/lib/machines/web1/data", "x") },
				First: &statetest.Want{Result: false, Comment: "no record says that it is a guest's"}},
			statetest.Case{Name: driver + " removes a deleted guest", Function: "only",
				Before:    []statetest.Call{{Function: "present", Arguments: web1(driver)}},
				Arguments: value.NewMap("name", "guests", "deleted", value.NewList(idA)),
				First:     &statetest.Want{Result: true, Changes: value.NewMap("web1", "removed with its disk")}},
			statetest.Case{Name: driver + " keeps the disk of a guest that is missing", Function: "only",
				Before: []statetest.Call{{Function: "present", Arguments: web1(driver)}},
				Setup: func(_ *testing.T, h *statetest.Host) {
					h.Put("/units", unitOf(driver)+" active enabled\n")
				},
				Arguments: value.NewMap("name", "guests", "guests", value.NewList(idB)),
				First:     &statetest.Want{Result: true, Changes: value.NewMap("web1", "stopped; its disk is kept")},
				After:     statetest.Tree{"/var/lib/machines/web1/etc/machine-id": statetest.File(idA + "\n")}},
			statetest.Case{Name: driver + " waits for the disk of a guest that moves", Function: "present",
				Arguments: moved(driver), First: &statetest.Want{Result: true, Comment: "waits for its disk"}},
			statetest.Case{Name: driver + " makes a guest from its disk", Function: "present", Arguments: moved(driver),
				Setup: func(t *testing.T, h *statetest.Host) { arrive(t, h) },
				After: statetest.Tree{"/var/lib/machines/web1/etc/os-release": statetest.File("ID=debian\n"),
					archive: {Absent: true}, "/var/lib/machines/web1/etc/hostname": {Absent: true}}},
			statetest.Case{Name: driver + " keeps an earlier disk while it waits", Function: "present", Arguments: moved(driver),
				Before: []statetest.Call{{Function: "present", Arguments: web1(driver)}},
				First:  &statetest.Want{Result: true, Comment: "waits for its disk"},
				After:  statetest.Tree{"/var/lib/machines/web1/etc/machine-id": statetest.File(idA + "\n")}},
			statetest.Case{Name: driver + " puts an earlier disk aside", Function: "present", Arguments: moved(driver),
				Before: []statetest.Call{{Function: "present", Arguments: web1(driver)}},
				Setup:  func(t *testing.T, h *statetest.Host) { arrive(t, h) },
				After: statetest.Tree{aside + "/usr/bin/corpus-agent": statetest.File("a program"),
					"/var/lib/machines/web1/usr": {Absent: true}}},
			statetest.Case{Name: driver + " removes an earlier disk", Function: "only",
				Before:    []statetest.Call{{Function: "present", Arguments: web1(driver)}},
				Arguments: value.NewMap("name", "guests", "guests", value.NewList(idB), "deleted", value.NewList(idA)),
				First:     &statetest.Want{Result: true, Changes: value.NewMap("web1", "removed with its disk")}},
			statetest.Case{Name: driver + " archives a disk", Function: "archived",
				Before:    []statetest.Call{{Function: "present", Arguments: web1(driver)}},
				Arguments: value.NewMap("name", "web1", "disk", idA, "file", archive),
				First:     &statetest.Want{Result: true, Changes: value.NewMap("archive", archive)},
				After:     statetest.Tree{"/var/lib/machines/web1/etc/machine-id": statetest.File(idA + "\n")}},
			statetest.Case{Name: driver + " archives no disk of a guest that runs", Function: "archived",
				Before: []statetest.Call{{Function: "present", Arguments: web1(driver)}},
				Setup: func(_ *testing.T, h *statetest.Host) {
					h.Put("/units", unitOf(driver)+" active disabled\n")
				},
				Arguments: value.NewMap("name", "web1", "disk", idA, "file", archive),
				First:     &statetest.Want{Result: false, Comment: "runs here, or starts at boot"}},
			statetest.Case{Name: driver + " archives no disk that it has not", Function: "archived",
				Arguments: value.NewMap("name", "web1", "disk", idA, "file", archive),
				First:     &statetest.Want{Result: true, Comment: "there is no such disk"}},
			statetest.Case{Name: driver + " lets the guests of the cloud be", Function: "only",
				Before:    []statetest.Call{{Function: "present", Arguments: web1(driver)}},
				Arguments: value.NewMap("name", "guests", "guests", value.NewList(idA), "deleted", value.NewList(idB))})
	}
	statetest.Run(t,
		statetest.Suite{State: "guest", Functions: func(*statetest.Host) module.Table { return guest.Functions() },
			Prepare: node, Cases: cases})
}

var errStopped = errors.New("the host was switched off")

// stoppedFiles fails all changes once left of them have been made.
type stoppedFiles struct {
	host.Files
	left *int
}

func (c stoppedFiles) step() error {
	if *c.left--; *c.left < 0 {
		return errStopped
	}
	return nil
}

func (c stoppedFiles) Write(p string, f host.NewFile) error {
	return errors.Join(c.step(), c.unlessStopped(func() error { return c.Files.Write(p, f) }))
}
func (c stoppedFiles) Mkdir(p string, m fs.FileMode) error {
	return errors.Join(c.step(), c.unlessStopped(func() error { return c.Files.Mkdir(p, m) }))
}
func (c stoppedFiles) Rename(a, b string) error {
	return errors.Join(c.step(), c.unlessStopped(func() error { return c.Files.Rename(a, b) }))
}
func (c stoppedFiles) Remove(p string) error {
	return errors.Join(c.step(), c.unlessStopped(func() error { return c.Files.Remove(p) }))
}

func (c stoppedFiles) unlessStopped(do func() error) error {
	if *c.left < 0 {
		return nil
	}
	return do()
}

// stoppedUnits makes changes of units with change.
type stoppedUnits struct {
	host.Units
	change func(func() error) error
}

func (u stoppedUnits) Act(ctx context.Context, verb host.UnitVerb, name string, wait bool) error {
	return u.change(func() error { return u.Units.Act(ctx, verb, name, wait) })
}
func (u stoppedUnits) SetBoot(ctx context.Context, verb host.BootVerb, name string, runtime bool) error {
	return u.change(func() error { return u.Units.SetBoot(ctx, verb, name, runtime) })
}

// TestInterruptedChangesAreFinished stops the creation and the removal of a guest at each step, and runs them again.
func TestInterruptedChangesAreFinished(t *testing.T) {
	for _, driver := range drivers() {
		for step := 0; ; step++ {
			h := statetest.NewHost(t)
			node(t, h)
			if !stopAt(t, h, step, "present", web1(driver)) {
				if step < 5 {
					t.Fatalf("creation has only %d steps", step)
				}
				break
			}
			hosttest.Converge(t, h.Host, guest.Functions(), "present", web1(driver))
			if got := h.Text("/var/lib/machines/web1/etc/machine-id"); got != idA+"\n" {
				t.Errorf("stopped at step %d: the machine ID is %q", step, got)
			}
			leftovers(t, h, step)
		}
		for step := 0; ; step++ {
			h := statetest.NewHost(t)
			node(t, h)
			hosttest.Converge(t, h.Host, guest.Functions(), "present", web1(driver))
			delete := value.NewMap("name", "guests", "deleted", value.NewList(idA))
			if !stopAt(t, h, step, "only", delete) {
				break
			}
			hosttest.Converge(t, h.Host, guest.Functions(), "only", delete)
			leftovers(t, h, step)
			if names, _ := h.Files.ReadDir("/var/lib/machines"); len(names) > 0 {
				t.Errorf("stopped at step %d of the removal: %v is left", step, names)
			}
			other := web1(driver)
			other.Set("id", idB)
			hosttest.Converge(t, h.Host, guest.Functions(), "present", other)
		}
	}
}

// stopAt applies a function that is stopped at a step. It returns false if the function has fewer steps.
func stopAt(t *testing.T, h *statetest.Host, step int, function string, args *value.Map) bool {
	t.Helper()
	whole, commands := h.Files, h.Commands
	left := step
	resource, diff := hosttest.Look(t, h.Host, guest.Functions(), function, args)
	units := h.Units
	h.Files = stoppedFiles{whole, &left}
	h.Units = stoppedUnits{units, func(change func() error) error {
		if left--; left < 0 {
			return errStopped
		}
		h.Files = whole // the imitated units are stored without counting
		defer func() { h.Files = stoppedFiles{whole, &left} }()
		return change()
	}}
	h.Commands = statetest.Commands(func(c host.Command) (host.Output, error) {
		if left--; left < 0 {
			return host.Output{}, errStopped
		}
		stopped := h.Files
		h.Files = whole // the imitated programs write without counting
		defer func() { h.Files = stopped }()
		return commands.Run(context.Background(), c)
	})
	_, err := resource.Apply(context.Background(), h.Host, diff)
	h.Files, h.Commands, h.Units = whole, commands, units
	if err != nil && left >= 0 {
		t.Fatalf("step %d: %v", step, err)
	}
	return err != nil
}

func leftovers(t *testing.T, h *statetest.Host, step int) {
	t.Helper()
	names, err := filepath.Glob(h.Dir + "/var/lib/machines/.*")
	if err != nil || len(names) > 0 {
		t.Errorf("stopped at step %d: %v is left (%v)", step, names, err)
	}
}

// TestOtherUsersDoNotReachRootFileSystems creates guests on nodes whose directory of root file systems is missing, or
// open to all users. It must become private, since an image may have setuid programs.
func TestOtherUsersDoNotReachRootFileSystems(t *testing.T) {
	for name, mode := range map[string]fs.FileMode{"absent": 0, "open": 0o755, "closed": 0o700} {
		h := statetest.NewHost(t)
		node(t, h)
		if mode != 0 {
			if err := os.MkdirAll(h.Dir+"/var/lib/machines", mode); err != nil {
				t.Fatal(err)
			}
		}
		hosttest.Converge(t, h.Host, guest.Functions(), "present", web1("nspawn"))
		info, err := os.Stat(h.Dir + "/var/lib/machines")
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: the directory has mode %v (%v), want 0700", name, info.Mode(), err)
		}
		if err := os.Chmod(h.Dir+"/var/lib/machines", 0o711); err != nil {
			t.Fatal(err)
		}
		hosttest.Converge(t, h.Host, guest.Functions(), "present", web1("nspawn"))
		if info, err := os.Stat(h.Dir + "/var/lib/machines"); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: a directory that was opened later has mode %v (%v)", name, info.Mode(), err)
		}
	}
}

// TestAnImageCannotLeadOutOfItsTree unpacks images that have links in the places of files that the node writes.
func TestAnImageCannotLeadOutOfItsTree(t *testing.T) {
	for name, target := range map[string]string{"etc": "/victim", "etc/": "", "usr": "/victim"} {
		h := statetest.NewHost(t)
		node(t, h)
		if err := os.Mkdir(h.Dir+"/victim", 0o755); err != nil {
			t.Fatal(err)
		}
		links := map[string]string{name: target}
		if target == "" {
			links = map[string]string{"etc/hostname": "/victim/hostname"}
		}
		image(t, h, links)
		resource, diff := hosttest.Look(t, h.Host, guest.Functions(), "present", web1("nspawn"))
		_, err := resource.Apply(context.Background(), h.Host, diff)
		if entries, _ := os.ReadDir(h.Dir + "/victim"); len(entries) > 0 {
			t.Errorf("with %v the node wrote %v", links, entries)
		}
		if target != "" && err == nil {
			t.Errorf("an image with %v was accepted", links)
		}
	}
}
