package cmd_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/fault"
)

// fleet is a store with three versions of a service, the third of which fails, and hosts that deploy from it.
type fleet struct {
	t     *testing.T
	dir   string
	store string
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, dir: t.TempDir()}
	f.store = filepath.Join(f.dir, "store")
	if err := os.Mkdir(f.store, 0o755); err != nil {
		t.Fatal(err)
	}
	f.corpus("keys", "new")
	f.corpus("store", "init")
	f.release("base", "1", "production", map[string]string{
		"states/top.sls":  "base: {'*': [base]}\n",
		"states/base.sls": "/etc/motd:\n  file.managed:\n    - contents: {{ grains.id }}\n",
	})
	f.service("1", "")
	return f
}

// service publishes a version that writes, replaces, links, renames and removes.
func (f *fleet) service(version, more string) {
	f.t.Helper()
	f.release("myapp", version, "testing", map[string]string{
		"version":                    version,
		"salt/config/states/top.sls": "base: {'*': [myapp]}\n",
		"salt/config/states/page":    "page of " + version + "\n",
		"salt/config/states/tree/a":  "a " + version + "\n", "salt/config/states/tree/b/c": "c " + version + "\n",
		"salt/config/states/tree/only-" + version: "\n",
		"salt/config/states/myapp.sls": `
/etc/myapp/myapp.conf:
  file.managed:
    - contents: version ` + version + `
    - makedirs: True
    - mode: '0640'
/etc/myapp/page:
  file.managed:
    - source: salt://page
/etc/myapp/tree:
  file.recurse:
    - source: salt://tree
    - clean: True
/etc/myapp/link:
  file.symlink:
    - target: page-` + version + `
/etc/myapp/lines:
  file.append:
    - text: a line
/etc/myapp/gone-` + version + `:
  file.absent: []
` + more,
	})
}

func (f *fleet) release(project, version, channel string, files map[string]string) {
	f.t.Helper()
	tree := filepath.Join(f.dir, "trees", project+version)
	for name, content := range files {
		path := filepath.Join(tree, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
			os.WriteFile(path, []byte(content), 0o644)); err != nil {
			f.t.Fatal(err)
		}
	}
	f.corpus("build", tree, "-o", tree+".tar.zst")
	f.corpus("publish", project, version, tree+".tar.zst", "--channel", channel)
}

func (f *fleet) env(root string) []string {
	return append(os.Environ(), "CORPUS_STORE=file://"+f.store, "CORPUS_KEYS="+f.dir+"/keys", "CORPUS_ROOT="+root,
		"HOME="+f.dir,
		"CORPUS_TRUST_ROOT="+f.dir+"/keys/root.json", "CORPUS_METADATA_ENABLED=false")
}

func (f *fleet) corpus(args ...string) {
	f.t.Helper()
	cmd := exec.Command(filepath.Join(bin(f.t), "corpus"), args...)
	cmd.Env = f.env("")
	if out, err := cmd.CombinedOutput(); err != nil {
		f.t.Fatalf("corpus %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// host makes a bare host.
func (f *fleet) host() string {
	f.t.Helper()
	root := f.t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(root, "etc"), 0o755),
		os.WriteFile(filepath.Join(root, "etc/hostname"), []byte("myapp-testing-local1-1\n"), 0o644)); err != nil {
		f.t.Fatal(err)
	}
	return root
}

// copied returns a copy of a host.
func (f *fleet) copied(root string) string {
	f.t.Helper()
	to := f.t.TempDir()
	if out, err := exec.Command("cp", "-a", root+"/.", to).CombinedOutput(); err != nil {
		f.t.Fatalf("copying a host: %v: %s", err, out)
	}
	return to
}

// agent runs corpus-agent on a host, under a watch.
func (f *fleet) agent(root string, w fault.Watch, args ...string) fault.Outcome {
	f.t.Helper()
	cmd := exec.Command(filepath.Join(bin(f.t), "corpus-agent"), args...)
	cmd.Env, w.Below = f.env(root), root
	o, err := w.Run(cmd)
	if err != nil {
		if strings.Contains(err.Error(), "seccomp") {
			f.t.Skipf("this kernel does not let system calls be watched: %v", err)
		}
		f.t.Fatal(err)
	}
	return o
}

// plain runs corpus-agent on a host and checks its exit code.
func (f *fleet) plain(root string, code int, args ...string) {
	f.t.Helper()
	if o := f.agent(root, fault.Watch{Calls: fault.Naming()}, args...); o.Code != code {
		f.t.Fatalf("corpus-agent %s: exit code %d, want %d: %s%s", strings.Join(args, " "), o.Code, code, o.Out, o.Err)
	}
}
