package guest_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/module/guest"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// data is a file of a guest that has run.
const data = "/var/lib/machines/web1/srv/data"

// nodeWithGuest returns a node on which web1 runs.
func nodeWithGuest(t *testing.T, driver string) *statetest.Host {
	t.Helper()
	h := statetest.NewHost(t)
	node(t, h)
	h.Put("/var/lib/corpus-guests/web1.json", `{"id":"`+idA+`","driver":"`+driver+`","step":"ready"}`+"\n")
	h.Put(data, "orders")
	h.Put("/var/lib/machines/web1/etc/machine-id", idA+"\n")
	h.Put("/units", unitOf(driver)+" active enabled\n")
	return h
}

// TestInterruptedMovesLoseNoDisk stops each step on the node that a guest leaves, and runs it again. The guest is
// stopped before its disk is archived, and the disk is removed only when it is among the deleted ones.
func TestInterruptedMovesLoseNoDisk(t *testing.T) {
	leave := value.NewMap("name", "guests", "guests", value.NewList())
	keep := value.NewMap("name", "web1", "disk", idA, "file", archive)
	drop := value.NewMap("name", "guests", "deleted", value.NewList(idA))
	for _, driver := range drivers() {
		for step, more := 0, true; more; step++ {
			h := nodeWithGuest(t, driver)
			more = stopAt(t, h, step, "only", leave)
			hosttest.Converge(t, h.Host, guest.Functions(), "only", leave)
			if text := h.Text("/units"); strings.Contains(text, "active enabled") {
				t.Fatalf("stopped at step %d: the guest that left still runs:\n%s", step, text)
			}
			more = stopAt(t, h, step, "archived", keep) || more
			hosttest.Converge(t, h.Host, guest.Functions(), "archived", keep)
			if h.Text(data) != "orders" || !strings.Contains(h.Text(archive), "orders") {
				t.Errorf("stopped at step %d: the disk, or its archive, lacks the data of the guest", step)
			}
			more = stopAt(t, h, step, "only", drop) || more
			hosttest.Converge(t, h.Host, guest.Functions(), "only", drop)
			if names, _ := h.Files.ReadDir("/var/lib/machines"); len(names) > 0 {
				t.Errorf("stopped at step %d of the removal: %v is left", step, names)
			}
			if !more && step < 4 {
				t.Errorf("a move has only %d steps", step)
			}
		}
	}
}

// TestInterruptedArrivalsAreFinished stops each step with which a node makes the disk of a guest from its archive.
func TestInterruptedArrivalsAreFinished(t *testing.T) {
	for _, driver := range drivers() {
		before := nodeWithGuest(t, driver)
		before.Put("/units", "")
		hosttest.Converge(t, before.Host, guest.Functions(), "archived",
			value.NewMap("name", "web1", "disk", idA, "file", archive))
		for step, more := 0, true; more; step++ {
			h := statetest.NewHost(t)
			node(t, h)
			arrive(t, h)
			h.Put(archive, before.Text(archive))
			if more = stopAt(t, h, step, "present", moved(driver)); !more && step < 6 {
				t.Errorf("an arrival has only %d steps", step)
			}
			hosttest.Converge(t, h.Host, guest.Functions(), "present", moved(driver))
			if got := h.Text(data); got != "orders" {
				t.Errorf("stopped at step %d: the guest has %q", step, got)
			}
			leftovers(t, h, step)
			if names, _ := h.Files.ReadDir("/var/lib/machines"); len(names) != 1 {
				t.Errorf("stopped at step %d: there are %v", step, names)
			}
		}
	}
}

// TestRemovedGuestsTakeOnlyTheirArchives removes a guest beside files whose names begin with the guest's.
func TestRemovedGuestsTakeOnlyTheirArchives(t *testing.T) {
	h := nodeWithGuest(t, "nspawn")
	others := []string{"web1-12.raw", "web1-staging/data", "web1-" + idA + ".tar/data", "web1-" + idA + ".tar.bz2",
		"web12-" + idA + ".tar"}
	for _, name := range others {
		h.Put("/var/lib/machines/"+name, "kept")
	}
	h.Put(archive, "an archive")
	h.Put(archive+".part", "part of an archive")
	hosttest.Converge(t, h.Host, guest.Functions(), "only", value.NewMap("name", "guests", "deleted", value.NewList(idA)))
	for _, name := range others {
		if h.Text("/var/lib/machines/"+name) != "kept" {
			t.Errorf("the removal of web1 took %s", name)
		}
	}
	if names, _ := h.Files.ReadDir("/var/lib/machines"); len(names) != len(others) {
		t.Errorf("the removal of web1 left %v", names)
	}
}

// TestNestedSubvolumesAreNotLost archives and removes a guest with subvolumes, one in the other, which find shows by
// their devices.
func TestNestedSubvolumesAreNotLost(t *testing.T) {
	h := nodeWithGuest(t, "nspawn")
	h.Put("/units", "")
	dir := "/var/lib/machines/web1"
	tools, deleted := nodeTools(h), []string{}
	tools["find"] = func(args []string, _ string) (string, error) {
		inner := map[string]string{dir: dir + "/srv", dir + "/srv": dir + "/srv/in it"}[args[0]]
		if inner == "" || slices.Contains(deleted, inner) {
			return "7 " + args[0] + "\x00", nil
		}
		return "7 " + args[0] + "\x007 " + dir + "/not one\x008 " + inner + "\x00", nil
	}
	tools["btrfs"] = func(args []string, _ string) (string, error) {
		deleted = append(deleted, args[2])
		return "", nil
	}
	statetest.UseTools(t, h, tools)
	resource, diff := hosttest.Look(t, h.Host, guest.Functions(), "archived",
		value.NewMap("name", "web1", "disk", idA, "file", archive))
	if _, err := resource.Apply(t.Context(), h.Host, diff); err == nil || !strings.Contains(err.Error(), dir+"/srv") {
		t.Errorf("an archive without a subvolume: %v", err)
	}
	if names, _ := h.Files.ReadDir("/var/lib/machines"); len(names) != 1 {
		t.Errorf("there are %v", names)
	}
	hosttest.Converge(t, h.Host, guest.Functions(), "only", value.NewMap("name", "guests", "deleted", value.NewList(idA)))
	if !slices.Equal(deleted, []string{dir + "/srv/in it", dir + "/srv"}) {
		t.Errorf("the removal of the guest deletes the subvolumes %q", deleted)
	}
}

// TestFailedArchivesLeaveNothing lets tar fail after it has written.
func TestFailedArchivesLeaveNothing(t *testing.T) {
	h := nodeWithGuest(t, "nspawn")
	h.Put("/units", "")
	for _, name := range []string{"a", "b", "c"} {
		if err := unix.Mknod(h.Dir+"/var/lib/machines/web1/"+name, unix.S_IFSOCK|0o600, 0); err != nil {
			t.Fatal(err)
		}
	}
	tools := nodeTools(h)
	args := value.NewMap("name", "web1", "disk", idA, "file", archive)
	fails := func(says string) {
		t.Helper()
		statetest.UseTools(t, h, tools)
		resource, diff := hosttest.Look(t, h.Host, guest.Functions(), "archived", args)
		_, err := resource.Apply(t.Context(), h.Host, diff)
		if text := fmt.Sprint(err, "; hint: ", diag.HintOf(err)); !strings.Contains(text, says) {
			t.Errorf("the error is %s, want %q", text, says)
		}
		if names, _ := h.Files.ReadDir("/var/lib/machines"); len(names) != 1 {
			t.Errorf("there are %v", names)
		}
	}
	tar := tools["tar"]
	tools["tar"] = func([]string, string) (string, error) {
		return "", statetest.Code{Code: 2, Text: "No space left on device"}
	}
	fails("No space left")
	tools["tar"] = func([]string, string) (string, error) {
		return "", statetest.Code{Code: 2, Text: strings.Repeat("tar: ./log: file changed as we read it\n", 3) +
			"tar: ./data: Cannot open: Input/output error\n"}
	}
	fails("guest web1: tar: ./data: Cannot open: Input/output error; hint: correct what tar names")
	tools["tar"] = func(args []string, input string) (string, error) { // real tar, and a full disk
		args = append([]string{}, args...)
		args[2] = "/../../../../../../../../dev/full"
		return tar(args, input)
	}
	fails("Cannot write: No space left on device")
	tools["tar"], tools["du"] = tar, func([]string, string) (string, error) { return "4611686018427387904\t/x\n", nil }
	fails("free, and the archive of guest web1 needs")
}

// TestArchivesOfNoDiskOfTheGuestAreKept lets an archive arrive that is cut, or another guest's.
func TestArchivesOfNoDiskOfTheGuestAreKept(t *testing.T) {
	for says, text := range map[string]func(string) string{
		"it lacks the end of a tar archive (tar: Unexpected EOF": func(string) string { return zeros(t)[:60<<10] },

		"lacks the end of a tar archive": func(whole string) string { return strings.TrimRight(whole, "\x00") },
		"/etc/machine-id with " + idA:    func(whole string) string { return strings.ReplaceAll(whole, idA, idB) },
	} {
		h := statetest.NewHost(t)
		node(t, h)
		arrive(t, h)
		h.Put(archive, text(h.Text(archive)))
		resource, diff := hosttest.Look(t, h.Host, guest.Functions(), "present", moved("nspawn"))
		if _, err := resource.Apply(t.Context(), h.Host, diff); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("the error is %v, want %q", err, says)
		}
		if h.Text(archive) == "" || h.Text("/var/lib/machines/web1") != "" {
			t.Error("the archive was removed, or the guest made")
		}
	}
}

// zeros returns an archive of a file of zeros.
func zeros(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	const size = 100 << 10
	err := w.WriteHeader(&tar.Header{Name: "data", Mode: 0o600, Size: size})
	if _, written := w.Write(make([]byte, size)); errors.Join(err, written) != nil {
		t.Fatal(err, written)
	}
	return b.String()
}

// TestWhiteoutsOfMovedDisksStay moves a disk with a file of overlayfs that marks a deleted one.
func TestWhiteoutsOfMovedDisksStay(t *testing.T) {
	before := nodeWithGuest(t, "nspawn")
	before.Put("/units", "")
	whiteout := "/var/lib/machines/web1/srv/gone"
	if err := unix.Mknod(before.Dir+whiteout, unix.S_IFCHR, 0); err != nil {
		t.Skipf("this machine makes no whiteouts: %v", err)
	}
	hosttest.Converge(t, before.Host, guest.Functions(), "archived",
		value.NewMap("name", "web1", "disk", idA, "file", archive))
	h := statetest.NewHost(t)
	node(t, h)
	arrive(t, h)
	h.Put(archive, before.Text(archive))
	hosttest.Converge(t, h.Host, guest.Functions(), "present", moved("nspawn"))
	if info, err := h.Files.Lstat(whiteout); err != nil || info.Mode&fs.ModeCharDevice == 0 {
		t.Errorf("the whiteout is %v (%v)", info.Mode, err)
	}
}
