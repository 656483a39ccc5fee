package units

import (
	"slices"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
)

func TestDropInNames(t *testing.T) {
	want := []string{"a-b-web@1.service.d", "service.d", "a-b-web@.service.d", "a-.service.d", "a-b-.service.d"}
	if got := dropInNames("a-b-web@1.service"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestUnitFilesThatSystemdHasNotRead checks changes of unit files for which NeedDaemonReload is false.
func TestUnitFilesThatSystemdHasNotRead(t *testing.T) {
	web := loadedFrom{names: []string{"web.service"}, fragment: "/usr/lib/systemd/system/web.service"}
	with := loadedFrom{names: web.names, fragment: web.fragment,
		dropIns: []string{"/etc/systemd/system/web.service.d/x.conf"}}
	unit := "/usr/lib/systemd/system/web.service"
	for name, c := range map[string]struct {
		files map[string]string
		from  loadedFrom
		want  bool
	}{
		"nothing changed": {map[string]string{unit: ""}, web, false},
		"the first drop-in": {map[string]string{unit: "", "/etc/systemd/system/web.service.d/x.conf": ""}, web,
			true},
		"a drop-in that is known": {map[string]string{unit: "", "/etc/systemd/system/web.service.d/x.conf": ""}, with,
			false},
		"a drop-in that is gone": {map[string]string{unit: ""}, with, true},
		"one for all services": {map[string]string{unit: "", "/run/systemd/system/service.d/all.conf": ""}, web,
			true},
		"a file that is no drop-in": {map[string]string{unit: "", "/etc/systemd/system/web.service.d/README": ""}, web,
			false},
		"a unit file that goes before": {map[string]string{unit: "", "/etc/systemd/system/web.service": ""}, web, true},
		"a unit file in /lib":          {map[string]string{"/lib/systemd/system/web.service": ""}, web, false},
	} {
		if got := c.from.differs(hosttest.Root(t, c.files).Files); got != c.want {
			t.Errorf("%s: differs is %t", name, got)
		}
	}
}

// TestLinkedUnitFilesAreReloaded checks that systemd reads linked unit files again before each action. After a switch
// to an earlier release the file is older, and systemd does not notice the change.
func TestLinkedUnitFilesAreReloaded(t *testing.T) {
	const unit, dropIns = "/etc/systemd/system/web.service", "/etc/systemd/system/web.service.d"
	for name, c := range map[string]struct {
		link, to string
		from     loadedFrom
		want     bool
	}{
		"a unit file in a release": {unit, "/srv/service/current/web.service", loadedFrom{fragment: unit}, true},
		"drop-ins in a release": {dropIns, "/srv/service/current/web.service.d", loadedFrom{
			fragment: "/usr/lib/systemd/system/web.service", dropIns: []string{dropIns + "/x.conf"}}, true},
		"an alias":      {unit, "/usr/lib/systemd/system/web.service", loadedFrom{fragment: unit}, false},
		"a masked unit": {unit, "/dev/null", loadedFrom{fragment: unit}, false},
	} {
		h := hosttest.Root(t, map[string]string{"/usr/lib/systemd/system/web.service": "",
			"/srv/service/current/web.service": "", "/srv/service/current/web.service.d/x.conf": "",
			"/etc/systemd/system/other.service": ""})
		if err := h.Files.Symlink(c.to, c.link); err != nil {
			t.Fatal(err)
		}
		c.from.names = []string{"web.service"}
		if got := c.from.differs(h.Files); got != c.want {
			t.Errorf("%s: differs is %t", name, got)
		}
	}
}

func TestSystemdReloadTriggers(t *testing.T) {
	for p, want := range map[string]bool{
		"/etc/systemd/system/web.service.d/x.conf": true, "/usr/lib/systemd/system/web.service": true,
		"/run/systemd/transient/a.service":               true,
		"/etc/systemd/system.control/a.service.d/b.conf": true, "/etc/systemd/system-preset/00.preset": true,
		"/usr/lib/systemd/system-generators/g": true,
		"/etc/fstab":                           true, "/etc/crypttab": true, "/etc/init.d/web": true,
		"/etc/rc2.d/S01web": true, "/etc/containers/systemd/web.container": true,
		"/etc/systemd/zram-generator.conf": true, "/etc/systemd/journald.conf": false, "/etc/motd": false,
		"/etc/systemd/resolved.conf.d/a.conf": false,
	} {
		if got := systemdReads(p); got != want {
			t.Errorf("%s: %t", p, got)
		}
	}
}
