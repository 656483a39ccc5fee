package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/packaging/remote"
)

// devAgent is an agent whose runs make and remove the records of guests, below the root that it is in.
const devAgent = `package main

import (
	"os"
	"path/filepath"
)

func main() {
	root := filepath.Dir(filepath.Dir(filepath.Dir(os.Args[0])))
	if os.Args[1] != "deploy" {
		return
	}
	_ = os.MkdirAll(root+"/var/lib/corpus/trust", 0o755)
	_ = os.WriteFile(root+"/var/lib/corpus/trust/root.json", nil, 0o644)
	record := root + "/var/lib/corpus-guests/dev1.json"
	if _, err := os.Stat(record); err == nil && os.Getenv("DEV_KEEPS") == "" {
		_ = os.Remove(record)
		return
	}
	_ = os.MkdirAll(filepath.Dir(record), 0o755)
	_ = os.WriteFile(record, nil, 0o644)
}
`

// newLaptop returns a workstation whose machine is the directory root, with programs in the place of those that change
// a machine.
func newLaptop(t *testing.T) *shell {
	t.Helper()
	s := newShell(t)
	s.env["CORPUS_ROOT"] = s.path("root")
	for name, text := range map[string]string{"bin/systemctl": "#!/bin/sh\necho inactive\n", "bin/sync": "#!/bin/sh\n",
		"bin/dpkg-query": "#!/bin/sh\nexit 1\n", "bin/ip": "#!/bin/sh\n", "root/etc/os-release": "ID=debian\n",
		"root/etc/hostname": "laptop\n", "root/etc/hosts": "127.0.0.1 localhost\n10.80.0.2\tdev1\n", "root/usr/bin/true": "",
		"root/var/lib/x": "", "root/run/systemd/system/x": "", "root/etc/systemd/nspawn/mine": "", "rootfs.tar": "a disk",
		"shop/README": ""} {
		file := s.path(name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", s.path("bin")+":"+os.Getenv("PATH"))
	agent, err := builtDevAgent()
	if err == nil {
		err = os.WriteFile(s.path("corpus-agent"), agent, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// builtDevAgent builds devAgent as the program of hosts, once for all tests.
var builtDevAgent = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "dev-agent-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	main := filepath.Join(dir, "cmd", "corpus-agent", "main.go")
	err = errors.Join(os.MkdirAll(filepath.Dir(main), 0o755), os.WriteFile(main, []byte(devAgent), 0o644),
		os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module github.com/corpus-agent/corpus-agent\n\ngo 1.26\n"), 0o644))
	if err != nil {
		return nil, err
	}
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", "agent",
		"./cmd/corpus-agent")
	build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, errors.New(string(out))
	}
	return os.ReadFile(filepath.Join(dir, "agent"))
})

const devUp = "dev up --agent @corpus-agent --wait 0s --rootfs @rootfs.tar"

// TestDeveloperEnvironmentIsMadeAndRemoved makes one, a second time, stops it and removes it.
func TestDeveloperEnvironmentIsMadeAndRemoved(t *testing.T) {
	s := newLaptop(t)
	s.expect(2, "dev ls", "there is no developer environment")
	s.expect(2, "dev down", "there is no developer environment")
	s.expect(2, "dev up --agent @corpus-agent", "no image was given")
	s.expect(2, devUp, "a person has to confirm this")
	s.expect(0, devUp+" --dry-run", "~ guest dev1: project dev1, image rootfs\n")
	if entries, err := os.ReadDir(s.path("root/var/lib")); err != nil || len(entries) != 1 {
		t.Errorf("a dry run made %v, %v", entries, err)
	}
	s.expect(0, devUp+" --yes", "dev1   dev1     rootfs  inactive  ssh root@10.80.0.2")
	want := "store: \"file:///var/lib/corpus-dev/store\"\ntop: \"merge\"\nservice: \"cloud\"\ninstance: \"dev\"\n" +
		"region: \"local1\"\nnode: \"n1\"\n"
	if got := s.read("root/etc/corpus/agent.yaml"); !strings.HasSuffix(got, want) && !strings.Contains(got,
		strings.TrimPrefix(want, "store: \"file:///var/lib/corpus-dev/store\"\n")) {
		t.Errorf("agent.yaml is\n%s", got)
	}
	for name, mode := range map[string]os.FileMode{"keys": 0o700, "store": 0o755, "environment": 0o600} {
		if info, err := os.Stat(s.path("root/var/lib/corpus-dev/" + name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if got := s.read("root/etc/hostname"); got != "laptop\n" {
		t.Errorf("the hostname is %q", got)
	}
	t.Setenv("DEV_KEEPS", "yes")
	dev := " --store file://" + s.path("root/var/lib/corpus-dev/store") + " --keys " +
		s.path("root/var/lib/corpus-dev/keys")
	s.expect(0, "dev up --agent @corpus-agent --wait 0s --yes", "dev1")
	s.expect(0, "ls"+dev, "cloud/dev     1\n")
	s.expect(0, "dev down --remove --dry-run", "- remove /etc/corpus\n")
	s.expect(3, "dev down --remove --yes", "1 guest left (dev1)")
	t.Setenv("DEV_KEEPS", "")
	s.expect(0, "dev down --remove --yes --json", `"/var/lib/corpus-dev"`)
	for _, file := range []string{"var/lib/corpus-dev", "var/lib/corpus", "etc/corpus", "usr/bin/corpus-agent"} {
		if _, err := os.Lstat(s.path("root/" + file)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", file, err)
		}
	}
	if got := s.read("root/etc/systemd/nspawn/mine") + s.read("root/etc/hosts"); got != "127.0.0.1 localhost\n" {
		t.Errorf("what was there before: %q", got)
	}
}

// TestInterruptedDeveloperEnvironmentsContinue removes what the steps of up made, from the last one on.
func TestInterruptedDeveloperEnvironmentsContinue(t *testing.T) {
	s := newLaptop(t)
	t.Setenv("DEV_KEEPS", "yes")
	s.expect(0, devUp+" --yes", "dev1")
	for _, files := range []string{"var/lib/corpus-guests usr/bin/corpus-agent etc/corpus",
		"var/lib/corpus-dev/root.json var/lib/corpus-dev/store/metadata/timestamp.json"} {
		for file := range strings.FieldsSeq(files) {
			if err := os.RemoveAll(s.path("root/" + file)); err != nil {
				t.Fatal(err)
			}
		}
		s.expect(0, devUp+" --yes", "dev1")
	}
	s.expect(0, "dev down --remove --dry-run", "- remove /usr/bin/corpus-agent\n")
}

// TestHostsOfOtherStoresAreNoDeveloperEnvironments checks that up, with a store of the user's, changes no other store
// and no host of one.
func TestHostsOfOtherStoresAreNoDeveloperEnvironments(t *testing.T) {
	s := newLaptop(t)
	s.expect(0, "keys new", "")
	s.expect(0, "store init", "")
	s.expect(0, devUp+" --yes", "")
	if s.expect(0, "ls", "signed until"); strings.Contains(s.out, "cloud") {
		t.Errorf("another store has\n%s", s.out)
	}
	for file, text := range map[string]string{"etc/corpus/agent.yaml": "store: https://store.example.com\n",
		"etc/corpus/environment": "CORPUS_STORE=https://store.example.com\n", "var/lib/corpus/ledger.json": "{}\n"} {
		other := newLaptop(t)
		path := other.path("root/" + file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		other.expect(2, devUp+" --yes", "this machine is a host of another store")
		if _, err := os.Lstat(other.path("root/var/lib/corpus-dev")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the refused command made files: %v", file, err)
		}
	}
}

// TestMountsOfAPerson parses mounts as they are given.
func TestMountsOfAPerson(t *testing.T) {
	s := newShell(t)
	shop := s.path("shop")
	if err := os.Mkdir(shop, 0o755); err != nil {
		t.Fatal(err)
	}
	uid, gid, err := ownerOf(shop)
	if err != nil {
		t.Fatal(err)
	}
	d := &developing{program: &program{IO: cli.IO{Getenv: func(string) string { return "" }}}, dir: devDir}
	own := cloud.Mount{Source: shop, Target: "/srv/work/shop", UID: uid, GID: gid}
	there := own
	there.Target = "/srv/shop"
	for text, want := range map[string]cloud.Mount{shop: own, shop + ":ro": own, shop + ":/srv/shop": there} {
		if got, err := d.parseMount(text); got != want || err != nil {
			t.Errorf("%s is %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, says := range map[string]string{shop + ":/a:/b": "--mount", shop + ":/proc/x": "its own /proc",
		s.path("none"): "none", shop + ":srv": "such as", shop + ":/a:rw:rw": "--mount"} {
		if got, err := d.parseMount(text); err == nil {
			t.Errorf("%s is %+v; want an error with %q", text, got, says)
		}
	}
	if _, err := d.parseMount(shop + ":rw"); (err != nil) != (uid == 0) {
		t.Errorf("a mount of the user %d for writing: %v", uid, err)
	}
	if err := os.Symlink("/", s.path("link")); err != nil {
		t.Fatal(err)
	}
	now := withMounts([]string{own.String()}, []cloud.Mount{d.storeMount(), there, own})
	want := slices.Sorted(slices.Values([]string{there.String(), own.String(), d.storeMount().String()}))
	if !slices.Equal(now, want) {
		t.Errorf("the mounts are %v, want %v", now, want)
	}
	if got := changedGuests(cloud.New(), cloud.New()); !slices.Equal(got, []remote.Change(nil)) {
		t.Errorf("equal clouds differ in %v", got)
	}
}
