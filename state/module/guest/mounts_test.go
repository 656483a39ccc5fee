package guest_test

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/module/guest"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestMountsOfGuests mounts working trees for a guest of each driver, which gets the places that only root changes, and
// never the paths of the trees.
func TestMountsOfGuests(t *testing.T) {
	const dir = "/run/corpus-guest-mounts/web1/"
	for driver, want := range map[string]string{
		"nspawn": "Bind=" + dir + "0:/srv/shop\nBindReadOnly=" + dir + "1:/srv/tools\n",
		"lxc": "lxc.mount.entry = " + dir + "0 srv/shop none bind,rw,nosuid,nodev,create=dir 0 0\n" +
			"lxc.mount.entry = " + dir + "1 srv/tools none bind,ro,nosuid,nodev,create=dir 0 0\n"} {
		h := statetest.NewHost(t)
		node(t, h)
		for _, one := range []string{"/run", "/run/corpus-guest-mounts", "/run/corpus-guest-mounts/web1"} {
			_ = h.Files.Mkdir(one, 0o755) // it may be there
		}
		args := web1(driver)
		args.Set("mounts", value.NewList("/home/ann/shop:/srv/shop:rw:1000:100", "/srv/tools:/srv/tools:ro:0:0"))
		hosttest.Converge(t, h.Host, guest.Functions(), "present", args)
		if text := config(h, driver); !strings.Contains(text, want) || strings.Contains(text, "/home/ann") {
			t.Errorf("the settings of %s are\n%s\nwant %s", driver, text, want)
		}
		if got := h.Text(dir + "0"); got != "{Source:/home/ann/shop At:"+dir+"0 Write:true UID:1000 GID:100 As:524288}" {
			t.Errorf("%s: mounted is %q", driver, got)
		}
		h.Put(dir+"1", "what another program has mounted")
		if _, diff := hosttest.Look(t, h.Host, guest.Functions(), "present", args); diff.Empty() {
			t.Errorf("%s: a mount of another directory is not noticed", driver)
		}
		args.Set("mounts", value.NewList("/home/ann/shop:/srv/shop:rw:1000:100"))
		hosttest.Converge(t, h.Host, guest.Functions(), "present", args)
		hosttest.Converge(t, h.Host, guest.Functions(), "only",
			value.NewMap("name", "guests", "guests", value.NewList(), "deleted", value.NewList(idA)))
		for p := range h.Snapshot(t) {
			if strings.HasPrefix(p, dir) {
				t.Errorf("%s: after the removal of the guest there is the mount %s", driver, p)
			}
		}
	}
}
