package cmd_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
)

// farSSH runs a command of corpus node init here: with the paths of the host below DIR/root, as another user than root.
const farSSH = `#!/bin/sh
while [ "$1" = -o ]; do shift 2; done
[ "$1" = admin@n1 ] || exit 255
script=$(printf %s "$2" | sed "s#^r=\$#r=DIR/root#")
PATH=DIR/far:$PATH CORPUS_ROOT=DIR/root exec sh -c "$script"
`

// farPrograms are programs of the host that would change this machine.
var farPrograms = map[string]string{"id": "echo 1000", "sudo": `shift; exec "$@"`, "hostname": ":", "systemctl": ":",
	"dpkg-query": "false", "sync": ":"}

// TestNodeInit makes a host below a root a node, with the real agent.
func TestNodeInit(t *testing.T) {
	artifacttest.Long(t)
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o755))
		if err != nil {
			t.Fatal(err)
		}
	}
	write("here/ssh", strings.ReplaceAll(farSSH, "DIR", dir))
	for name, text := range farPrograms {
		write("far/"+name, "#!/bin/sh\n"+text+"\n")
	}
	for name, text := range map[string]string{"etc/os-release": "ID=debian\n", "etc/hostname": "bare\n",
		"etc/hosts": "127.0.0.1 localhost\n", "usr/bin/true": "", "var/lib/x": "", "run/systemd/system/x": ""} {
		write("root/"+name, text)
	}
	write("store/x", "")
	env := append(os.Environ(), "PATH="+dir+"/here:"+os.Getenv("PATH"), "HOME="+dir, "CORPUS_STORE=file://"+dir+"/store",
		"CORPUS_KEYS="+dir+"/keys", "CORPUS_METADATA_ENABLED=false")
	corpus := func(code int, words string) string {
		t.Helper()
		cmd := exec.Command(filepath.Join(bin(t), "corpus"), strings.Fields(words)...)
		cmd.Env = env
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Fatalf("corpus %s: exit code %d, want %d\n%s", words, got, code, out)
		}
		return string(out)
	}
	corpus(0, "keys new")
	corpus(0, "store init")
	corpus(0, "node add n1 --mode prod --region eu1 --address 192.0.2.1 --yes")
	states := filepath.Join("tree", "salt/config/states")
	write(states+"/top.sls", "base:\n  '*': [node]\n")
	write(states+"/node.sls", "/srv/node:\n  file.managed:\n    - contents: a node\n")
	write(states+"/cloud.yaml", "form: 1\nnodes:\n  n1: {mode: prod, region: eu1, driver: nspawn, slots: 20}\n")
	corpus(0, "build "+dir+"/tree -o "+dir+"/cloud.tar.zst")
	corpus(0, "publish cloud 2 "+dir+"/cloud.tar.zst --channel prod")

	if out := corpus(2, "node init n2 admin@n1"); !strings.Contains(out, `did you mean "n1"?`) {
		t.Errorf("an unknown node:\n%s", out)
	}
	if out := corpus(3, "node init n1 other@n1 --yes"); !strings.Contains(out, "see that `ssh other@n1 true` works") {
		t.Errorf("a host that ssh does not reach:\n%s", out)
	}
	if out := corpus(2, "node init n1 admin@n1"); !strings.Contains(out, "hostname: bare -> cloud-prod-eu1-n1") ||
		!strings.Contains(out, "give --yes to make them") {
		t.Errorf("without a terminal:\n%s", out)
	}
	if out := corpus(0, "node init n1 admin@n1 --yes"); !strings.Contains(out, "converged") ||
		!strings.HasSuffix(out, "admin@n1 is set up as cloud-prod-eu1-n1\n") {
		t.Errorf("the command:\n%s", out)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "root/srv/node")); err != nil || string(got) != "a node\n" {
		t.Errorf("the node has %q, %v", got, err)
	}
	config, err := os.ReadFile(filepath.Join(dir, "root/etc/corpus/agent.yaml"))
	if err != nil || !strings.HasSuffix(string(config), "\ntop: \"merge\"\n") {
		t.Errorf("agent.yaml: %v\n%s", err, config)
	}
}
