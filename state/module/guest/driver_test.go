package guest_test

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/module/guest"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// config returns the texts of the settings of a guest, by driver.
func config(h *statetest.Host, driver string) string {
	var b strings.Builder
	for file := range strings.SplitSeq(settingsOf(driver), ", ") {
		b.WriteString(h.Text(file))
	}
	return b.String()
}

// TestGuestsReachNothingOfTheNode checks the settings of each driver: a guest has users of its own, a network on the
// bridge or none, and of the files of the node only those that are mounted read-only.
func TestGuestsReachNothingOfTheNode(t *testing.T) {
	for driver, want := range map[string][]string{
		"nspawn": {"PrivateUsers=524288:65536\n", "PrivateUsersOwnership=chown\n", "Bridge=guests\n",
			"BindReadOnly=/var/lib/corpus-guests/web1:/etc/corpus-node\n",
			"BindReadOnly=/var/lib/corpus-guests/web1/host0.network:/etc/systemd/network/10-corpus.network\n"},
		"lxc": {"lxc.idmap = u 0 524288 65536\n", "lxc.idmap = g 0 524288 65536\n", "lxc.net.0.link = guests\n",
			"lxc.uts.name = shop-prod-eu1-web1\n",
			"lxc.mount.auto =\nlxc.mount.auto = proc:mixed sys:ro cgroup:mixed\n", "lxc.apparmor.profile = generated\n",
			"lxc.mount.entry = /var/lib/corpus-guests/web1 etc/corpus-node none bind,ro,nosuid,nodev,create=dir 0 0\n",
			"lxc.mount.entry = /var/lib/corpus-guests/web1/host0.network etc/systemd/network/10-corpus.network none " +
				"bind,ro,nosuid,nodev,create=file 0 0\n",
			"BindPaths=/var/lib/machines/%i:/run/corpus-lxc/%i\n", "lxc.rootfs.path = dir:/run/corpus-lxc/web1\n"},
	} {
		h := statetest.NewHost(t)
		node(t, h)
		h.Put("/var/lib/corpus-guests/web1/host0.network", "[Match]\n")
		args := web1(driver)
		args.Set("binds", value.NewMap("/var/lib/corpus-guests/web1", "/etc/corpus-node",
			"/var/lib/corpus-guests/web1/host0.network", "/etc/systemd/network/10-corpus.network"))
		hosttest.Converge(t, h.Host, guest.Functions(), "present", args)
		text := config(h, driver)
		for _, line := range want {
			if !strings.Contains(text, line) {
				t.Errorf("the settings of %s lack %q:\n%s", driver, line, text)
			}
		}
		for _, mount := range []string{"BindReadOnly=", "lxc.mount.entry", "Bind="} {
			if n := strings.Count("\n"+text, "\n"+mount); n != 0 && n != 2 {
				t.Errorf("%s mounts %d of %s:\n%s", driver, n, mount, text)
			}
		}
		args.Set("bridge", "")
		hosttest.Converge(t, h.Host, guest.Functions(), "present", args)
		if text := config(h, driver); strings.Contains(text, "guests\n") ||
			!strings.Contains(text, "VirtualEthernet=no") && !strings.Contains(text, "type = empty") {
			t.Errorf("a guest of %s without a network has the settings\n%s", driver, text)
		}
	}
}

// TestPortsOfGuestsHaveKnownNames checks the names of the ports of the bridge, by which nodes filter them.
func TestPortsOfGuestsHaveKnownNames(t *testing.T) {
	for name, want := range map[string]map[string]string{
		"twelveletter":  {"nspawn": "\nBridge=guests\n", "lxc": "lxc.net.0.veth.pair = vb-8\n"},
		"thirteenchars": {"nspawn": "\nVirtualEthernetExtra=vb-8:host0\n", "lxc": "lxc.net.0.veth.pair = vb-8\n"},
	} {
		for driver, line := range want {
			h := statetest.NewHost(t)
			node(t, h)
			args := web1(driver)
			args.Set("name", name)
			hosttest.Converge(t, h.Host, guest.Functions(), "present", args)
			text := h.Text(strings.ReplaceAll(strings.Split(settingsOf(driver), ", ")[0], "web1", name))
			if text += h.Text("/var/lib/lxc/" + name + "/config"); !strings.Contains(text, line) {
				t.Errorf("the settings of %s for %s lack %q:\n%s", driver, name, line, text)
			}
		}
	}
}

// TestEachDriverHasTheFilesOfOneGuestRemoved removes one of two guests.
func TestEachDriverHasTheFilesOfOneGuestRemoved(t *testing.T) {
	for _, driver := range drivers() {
		h := statetest.NewHost(t)
		node(t, h)
		hosttest.Converge(t, h.Host, guest.Functions(), "present", web1(driver))
		web2 := web1(driver)
		for key, v := range map[string]any{"name": "web2", "id": idB, "uids": 9 * 65536} {
			web2.Set(key, v)
		}
		hosttest.Converge(t, h.Host, guest.Functions(), "present", web2)
		hosttest.Converge(t, h.Host, guest.Functions(), "only",
			value.NewMap("name", "guests", "guests", value.NewList(idB), "deleted", value.NewList(idA)))
		for p := range h.Snapshot(t) {
			if strings.Contains(p, "web1") {
				t.Errorf("%s: after the removal of web1 there is %s", driver, p)
			}
		}
		if _, diff := hosttest.Look(t, h.Host, guest.Functions(), "present", web2); !diff.Empty() {
			t.Errorf("%s: the removal of web1 changed web2: %v", driver, diff.Changes.Names())
		}
	}
}

// TestUnitsOfEachDriverAreStopped lets guests leave that run or start at boot.
func TestUnitsOfEachDriverAreStopped(t *testing.T) {
	for _, driver := range drivers() {
		h := nodeWithGuest(t, driver)
		hosttest.Converge(t, h.Host, guest.Functions(), "only", value.NewMap("name", "guests", "guests", value.NewList()))
		if got := h.Text("/units"); got != unitOf(driver)+" inactive disabled\n" {
			t.Errorf("%s: the unit is %q", driver, got)
		}
	}
}

// TestGuestsThatLeftLeaveNoSecrets lets a guest leave that runs, and one whose unit has ended before.
func TestGuestsThatLeftLeaveNoSecrets(t *testing.T) {
	for _, driver := range drivers() {
		h := nodeWithGuest(t, driver)
		for range 2 {
			h.Put("/var/lib/corpus-guests/web1/backup.json", "a password")
			hosttest.Converge(t, h.Host, guest.Functions(), "only", value.NewMap("name", "guests", "guests", value.NewList()))
			if _, err := h.Files.Lstat("/var/lib/corpus-guests/web1"); err == nil {
				t.Errorf("%s: the node keeps the files of a guest that has left", driver)
			}
			if h.Text("/var/lib/corpus-guests/web1.json") == "" {
				t.Errorf("%s: the node does not know the disk that it keeps", driver)
			}
		}
	}
}

// TestFilesOfAnImageBecomeTheGuests makes a guest of LXC from an image with a setuid program.
func TestFilesOfAnImageBecomeTheGuests(t *testing.T) {
	h := statetest.NewHost(t)
	node(t, h)
	tools, owners, bits := nodeTools(h), "0:0\n0:0\n0:42\n1000:1000\n589824:589825\n", []string{}
	find, dir := tools["find"], "/var/lib/machines/.new-"+idA
	tools["find"] = func(args []string, in string) (string, error) {
		switch args[len(args)-1] {
		case `%U:%G\n`:
			return owners, nil
		case `%m %p\0`:
			return "4755 " + dir + "/usr/bin/su\x002755 " + dir + "/a b\nc\x00", nil
		}
		return find(args, in)
	}
	var given []string
	tools["chown"] = func(args []string, _ string) (string, error) {
		given = append(given, strings.Join(args, " "))
		return "", nil
	}
	tools["chmod"] = func(args []string, _ string) (string, error) {
		bits = append(bits, strings.Join(args, " "))
		return "", nil
	}
	statetest.UseTools(t, h, tools)
	hosttest.Converge(t, h.Host, guest.Functions(), "present", web1("lxc"))
	var want []string
	for _, pair := range []string{"0:0 524288:524288", "0:42 524288:524330", "1000:1000 525288:525288"} {
		want = append(want, "--recursive --no-dereference --from="+pair+" "+dir)
	}
	if !slices.Equal(given, want) {
		t.Errorf("the owners are set with\n%s\nwant\n%s", strings.Join(given, "\n"), strings.Join(want, "\n"))
	}
	if want := []string{"4755 " + dir + "/usr/bin/su", "2755 " + dir + "/a b\nc"}; !slices.Equal(bits, want) {
		t.Errorf("the bits are set with %q, want %q", bits, want)
	}
}

// TestGuestsGetTheirFilesForReal lets the programs of the machine give files to a guest.
func TestGuestsGetTheirFilesForReal(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("giving files to other users takes root")
	}
	h := statetest.NewHost(t)
	node(t, h)
	tools := nodeTools(h)
	for _, name := range []string{"chown", "chmod"} {
		tools[name] = real(h, name)
	}
	statetest.UseTools(t, h, tools)
	image(t, h, map[string]string{"link": "/victim"})
	h.Put("/victim", "")
	hosttest.Converge(t, h.Host, guest.Functions(), "present", web1("lxc"))
	owners := map[string]int{"": 524288, "/etc/hostname": 524288, "/link": 524288, "/../../../../victim": 0}
	for name, want := range owners {
		info, err := os.Lstat(h.Dir + "/var/lib/machines/web1" + name)
		if err != nil {
			t.Fatal(err)
		}
		if got := int(info.Sys().(*syscall.Stat_t).Uid); got != want {
			t.Errorf("%q belongs to %d, want %d", name, got, want)
		}
	}
}

// refused returns the error of a check, which must have one with a text.
func refused(t *testing.T, h *statetest.Host, args *value.Map, says string) {
	t.Helper()
	_, err := hosttest.Resource(t, guest.Functions(), "present", args).Check(t.Context(), h.Host)
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("the error is %v, want %q", err, says)
	}
}

// TestGuestsKeepTheirDriver gives a node another driver: no unit may start a disk that the unit of the other one runs.
func TestGuestsKeepTheirDriver(t *testing.T) {
	for _, driver := range drivers() {
		for _, other := range drivers() {
			if other != driver {
				refused(t, nodeWithGuest(t, driver), web1(other), "was made for the driver "+driver)
			}
		}
	}
}

// TestDisksThatAreGoneAreNotMadeAgain removes the disk of a guest by hand, or does not mount it: the next run must not
// start an empty guest in its place.
func TestDisksThatAreGoneAreNotMadeAgain(t *testing.T) {
	for _, driver := range drivers() {
		h := nodeWithGuest(t, driver)
		if err := h.Files.RemoveAll("/var/lib/machines/web1"); err != nil {
			t.Fatal(err)
		}
		refused(t, h, web1(driver), "the disk of guest web1 is missing")
		if err := h.Files.Remove("/var/lib/corpus-guests/web1.json"); err != nil {
			t.Fatal(err)
		}
		hosttest.Converge(t, h.Host, guest.Functions(), "present", web1(driver))
	}
}

// TestFullDisksGetTheirRoomBack lets the disk become full while an image is unpacked.
func TestFullDisksGetTheirRoomBack(t *testing.T) {
	for _, driver := range drivers() {
		h := statetest.NewHost(t)
		node(t, h)
		tools := nodeTools(h)
		unpack := tools["tar"]
		tools["tar"] = func(args []string, in string) (string, error) {
			_, _ = unpack(args, in)
			return "", statetest.Code{Code: 2, Text: "tar: x: Cannot write: No space left on device"}
		}
		statetest.UseTools(t, h, tools)
		resource, diff := hosttest.Look(t, h.Host, guest.Functions(), "present", web1(driver))
		if _, err := resource.Apply(t.Context(), h.Host, diff); err == nil || !strings.Contains(err.Error(), "No space") {
			t.Errorf("the error is %v", err)
		}
		leftovers(t, h, 0)
		statetest.UseTools(t, h, nodeTools(h))
		hosttest.Converge(t, h.Host, guest.Functions(), "present", web1(driver))
	}
}
