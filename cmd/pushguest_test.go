package cmd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPushToAGuest pushes a working tree and a pillar to a guest, through the port of its node.
func TestPushToAGuest(t *testing.T) {
	d := newDeveloper(t)
	work := t.TempDir()
	d.env = append(d.env, "CORPUS_STORE=file://"+work+"/store", "CORPUS_KEYS="+work+"/keys", "GIT_SSH_VARIANT=ssh",
		"GIT_SSH="+work+"/ssh")
	shim := `#!/bin/sh
while [ "$1" = -o ]; do shift 2; done
[ "$1 $2 $3" = "-p 40000 root@192.0.2.1" ] || { echo "ssh $*" >&2; exit 255; }
exec sh -c "$(printf %s "$4" | sed 's#/srv/projects#ROOT/srv/projects#')"
`
	if err := os.WriteFile(work+"/ssh", []byte(strings.ReplaceAll(shim, "ROOT", d.root)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(work, "store"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.commit(".salt/00.sls", writes)
	for _, line := range []string{"keys new", "store init", "build . -o " + work + "/image.tar.zst",
		"publish image-x 1.0 " + work + "/image.tar.zst", "node add n1 --mode dev --region eu1 --address 192.0.2.1 --yes",
		"node add n2 --mode prod --region eu1 --address 192.0.2.2 --yes", "guest image x image-x 1.0 --yes",
		"guest create web1 --project shop --env dev --image x --yes",
		"guest create web2 --project shop --env prod --image x --yes",
	} {
		d.ok("corpus", strings.Fields(line)...)
	}
	shop, pillar := d.tree, t.TempDir()
	d.tree = pillar
	d.ok("git", "init", "-q", "-b", "main")
	d.commit("init.sls", "makina-projects.shop:\n  data: {text: of the guest}\n")
	d.tree = shop
	if out := d.ok("corpus", "push", "web1", "shop", "--guest", "--init", "--pillar", pillar); !strings.Contains(out,
		"pushed shop to web1") {
		t.Errorf("the push prints\n%s", out)
	}
	d.host("srv/out", "of the guest")
	for words, says := range map[string]string{"web2 shop --guest": "guest web2 is of prod",
		"web1 shop --guest --env prod": "is of prod", "web3 shop --guest": "did you mean",
		"web1 shop --cloud x": "no list of clouds"} {
		if out, err := d.run("corpus", append([]string{"push"}, strings.Fields(words)...)...); err == nil ||
			!strings.Contains(out, says) {
			t.Errorf("push %s: %v\n%s", words, err, out)
		}
	}
}
