package cloud_test

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// TestOnlyGuestsOfDevHaveMounts publishes a mount for guests and on nodes of each mode.
func TestOnlyGuestsOfDevHaveMounts(t *testing.T) {
	for _, c := range []struct {
		env, mode string
		mounts    []string
		says      string
	}{
		{"dev", "dev", []string{"/home/ann/shop:/srv/shop:rw:1000:1000", "/srv/store:/srv/store:ro:0:0"}, ""},
		{"prod", "dev", []string{"/home/ann/shop:/srv/shop:ro:1000:1000"}, "a guest of prod on a node of dev"},
		{"dev", "staging", []string{"/home/ann/shop:/srv/shop:ro:1000:1000"}, "a guest of dev on a node of staging"},
		{"dev", "dev", []string{"/a:/srv/shop:ro:1000:1000", "/b:/srv/shop:ro:1000:1000"},
			"the place in guests.web1 /srv/shop"},
		{"dev", "dev", []string{"/home/ann:/srv:rw:0:0"}, "is not a mount"},
	} {
		data := sample(t)
		g, n := data.Guests["web1"], data.Nodes["n1"]
		g.Env, g.Mounts, n.Mode = c.env, c.mounts, c.mode
		data.Guests["web1"], data.Nodes["n1"] = g, n
		text, err := data.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		again, err := cloud.Parse(cloud.Name, text)
		if c.says == "" {
			if err != nil || strings.Join(again.Guests["web1"].Mounts, " ") != strings.Join(c.mounts, " ") {
				t.Errorf("%v: %v, %+v", c.mounts, err, again)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v for %s on a node of %s: %v; want %q", c.mounts, c.env, c.mode, err, c.says)
		}
	}
}

func TestMountsThatWouldGiveRightsAreRefused(t *testing.T) {
	good := "/home/ann/shop:/srv/shop:rw:1000:1000"
	if m, err := cloud.ParseMount(good); err != nil || m.String() != good {
		t.Errorf("%s is %+v, %v", good, m, err)
	}
	for _, text := range []string{"", "/a:/b:rw:1000", "/a:/b:rw:0:0", "/a:/b:rw:1000:0", "/a:/b:ro:-1:5", "/a:/b:ro:01:1",
		"/a:/b:ro:524288:524288", "/a/../etc:/b:ro:1:1", "a:/b:ro:1:1", "/a:/:ro:1:1", "/a:/proc/x:ro:1:1", "/a:/run:ro:1:1",
		"/a b:/b:ro:1:1", "/a:/b:rx:1:1", "/:/b:ro:1:1"} {
		if m, err := cloud.ParseMount(text); err == nil || diag.HintOf(err) == "" {
			t.Errorf("%q is %+v, or its error has no hint: %v", text, m, err)
		}
	}
}
