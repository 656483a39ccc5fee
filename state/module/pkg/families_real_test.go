//go:build integration

package pkg_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/apk" // nfpm finds its formats by registration
	_ "github.com/goreleaser/nfpm/v2/arch"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/pkg"
	"github.com/corpus-agent/corpus-agent/state/module/pkgrepo"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// family is a package manager on which the tests of this file run.
type family struct {
	name     string     // as Host.Packages.Family returns it
	release  string     // content of /etc/os-release
	packages []string   // Debian packages with the client
	format   string     // format of nfpm
	prepare  string     // shell command, run once in the root before everything else
	index    string     // shell command, run after packages were added to /srv/repository
	query    string     // shell command that prints name and version of all packages
	vercmp   string     // shell command that reads pairs of versions from /tmp/pairs and prints -1, 0, 1 or <, =, >
	parts    [][]string // the versions to compare are made of one item of each list
	lock     string     // shell command that locks the package manager for some seconds; "" if there is no lock to test
	repo     []any      // arguments of pkgrepo.managed
	removing bool       // removing a package removes those that require it; otherwise it fails
	single   bool       // a repository has one version of a package
	choosy   bool       // the client does not choose a provider of a virtual package
	client   string     // environment variable with the client's path, if Debian has no package of it
	target   string     // path of that client in the root
	sign     func(*familyRoot)
}

// familyRoot is a root of a family's distribution with a package repository.
type familyRoot struct {
	*testing.T
	family
	root string
}

func start(t *testing.T, f family) *familyRoot {
	t.Helper()
	if f.client != "" && os.Getenv(f.client) == "" {
		t.Skipf("Debian has no %s; set %s to the path of one that is linked statically", f.name, f.client)
	}
	m := &familyRoot{t, f, hosttest.Distribution(t, f.release, f.packages...)}
	if f.client != "" {
		program, err := os.ReadFile(os.Getenv(f.client))
		if err != nil {
			t.Fatal(err)
		}
		hosttest.Put(t, m.root+f.target, string(program), 0o755)
	}
	m.sh(f.prepare)
	m.add("foo", "1.0", "1")
	m.add("bar", "1.0", "1", "foo >= 2")
	m.add("broken", "1", "1", "nothere")
	m.add("keeper", "1", "1")
	m.provide("baz", "1.0", "1", "virt")
	m.reindex()
	return m
}

// reindex updates the index of the repository.
func (m *familyRoot) reindex() {
	m.Helper()
	m.sh(m.index)
	if m.sign != nil {
		m.sign(m)
	}
}

func (m *familyRoot) sh(line string) string {
	m.Helper()
	if line == "" {
		return ""
	}
	return strings.TrimSpace(hosttest.In(m.T, m.root, "sh", "-ec", line))
}

func (m *familyRoot) add(name, version, release string, needs ...string) string {
	for i := range needs {
		if m.format != "rpm" {
			needs[i] = strings.ReplaceAll(needs[i], " ", "")
		}
	}
	return m.build(name, version, release, nfpm.Overridables{Depends: needs})
}

func (m *familyRoot) provide(name, version, release string, provides ...string) {
	m.build(name, version, release, nfpm.Overridables{Provides: provides})
}

// build builds a package file and returns its path in the root.
func (m *familyRoot) build(name, version, release string, more nfpm.Overridables) string {
	m.Helper()
	packager, err := nfpm.Get(m.format)
	if err != nil {
		m.Fatal(err)
	}
	content := filepath.Join(m.TempDir(), "version")
	if err := os.WriteFile(content, []byte(version), 0o644); err != nil {
		m.Fatal(err)
	}
	more.Contents = files.Contents{{Source: content, Destination: "/usr/share/" + name + "/version"}}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: name, Version: version, Release: release, Arch: "all", Platform: "linux", VersionSchema: "none",
		Maintainer:  "A <a@example.com>",
		Description: name, License: "MIT", Overridables: more,
	})
	if err := nfpm.PrepareForPackager(info, m.format); err != nil {
		m.Fatal(err)
	}
	file := "/srv/repository/" + packager.ConventionalFileName(info)
	if err := os.MkdirAll(m.root+"/srv/repository", 0o755); err != nil {
		m.Fatal(err)
	}
	out, err := os.Create(m.root + file)
	if err != nil {
		m.Fatal(err)
	}
	if err := errors.Join(packager.Package(info, out), out.Close()); err != nil {
		m.Fatal(err)
	}
	return file
}

// run returns the host in the state of a new run.
func (m *familyRoot) run() *host.Host {
	m.Helper()
	h, err := machine.New(host.Options{Root: m.root, Chroot: true, LockWait: time.Second})
	if err != nil {
		m.Fatal(err)
	}
	if got := h.Packages.Family(); got != m.name {
		m.Fatalf("the package manager is %q, want %q", got, m.name)
	}
	return h
}

// opener opens salt:// URLs as files of the machine.
type opener struct{ root string }

func (o opener) Open(_ context.Context, url, _ string) (io.ReadCloser, error) {
	return os.Open(o.root + "/" + strings.TrimPrefix(url, "salt://"))
}

func (m *familyRoot) table(function string) module.Table {
	if strings.HasPrefix(function, "repo ") {
		return pkgrepo.Functions(opener{m.root})
	}
	return pkg.Functions(opener{m.root})
}

// converge applies a state and checks that a second run, on a new host.Host, finds nothing to do.
func (m *familyRoot) converge(function string, arguments ...any) string {
	m.Helper()
	ctx, args := context.Background(), value.NewMap(arguments...)
	name := strings.TrimPrefix(function, "repo ")
	resource := hosttest.Resource(m.T, m.table(function), name, args)
	h := m.run()
	diff, err := resource.Check(ctx, h)
	if err != nil {
		m.Fatalf("%s of %s: %v (hint: %s)", function, value.Repr(args), err, diag.HintOf(err))
	}
	if diff.Empty() {
		return ""
	}
	report, err := resource.Apply(ctx, h, diff)
	if err != nil {
		m.Fatalf("%s of %s: %v (hint: %s)", function, value.Repr(args), err, diag.HintOf(err))
	}
	if !diff.Unknown && !value.Equal(diff.Changes, report.Changes) {
		m.Errorf("%s of %s: the planned changes are\n%s\nand the changes made are\n%s", function,
			value.Repr(args), value.Repr(diff.Changes),
			value.Repr(report.Changes))
	}
	fresh := true
	if name == "latest" { // pkg.latest is unknown as long as the indexes may be stale
		fresh = false
		args.Set("refresh", false)
	}
	again, err := hosttest.Resource(m.T, m.table(function), name, args).Check(ctx, m.run())
	if err != nil || !again.Empty() && !(fresh && again.Unknown) {
		m.Errorf("%s of %s: a second run would still change %s: %s, %v", function, value.Repr(args),
			value.Repr(again.Changes), again.Comment, err)
	}
	return value.Repr(report.Changes)
}

// fails runs a state that must fail, and returns its error and hint.
func (m *familyRoot) fails(function string, arguments ...any) string {
	m.Helper()
	ctx, h := context.Background(), m.run()
	resource := hosttest.Resource(m.T, m.table(function), function, value.NewMap(arguments...))
	diff, err := resource.Check(ctx, h)
	if err == nil {
		_, err = resource.Apply(ctx, h, diff)
	}
	if err == nil {
		m.Fatalf("%s of %v worked", function, arguments)
	}
	if diag.HintOf(err) == "" {
		m.Errorf("%s of %v fails without a hint: %v", function, arguments, err)
	}
	return err.Error() + " / " + diag.HintOf(err)
}

// want compares the list of installed packages that the client itself prints.
func (m *familyRoot) want(list string) {
	m.Helper()
	got := strings.Join(strings.Fields(m.sh("{ "+m.query+"; } | { grep -v -e keeper -e gpg-pubkey || true; }")), " ")
	if got != list {
		m.Errorf("installed are %q, want %q", got, list)
	}
}

func (m *familyRoot) contains(got string, words ...string) {
	m.Helper()
	for _, word := range words {
		if !strings.Contains(got, word) {
			m.Errorf("%q lacks %q", got, word)
		}
	}
}

// signIndex signs the index of an apk repository by prepending an archive with the signature.
func signIndex(m *familyRoot) {
	m.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		m.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		m.Fatal(err)
	}
	hosttest.Put(m.T, m.root+"/etc/apk/keys/test.rsa.pub",
		string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})), 0o644)
	indexes, err := filepath.Glob(m.root + "/srv/repository/*/APKINDEX.tar.gz")
	if err != nil || len(indexes) != 1 {
		m.Fatalf("the indexes are %v, %v; want one", indexes, err)
	}
	index, err := os.ReadFile(indexes[0])
	if err != nil {
		m.Fatal(err)
	}
	sum := sha1.Sum(index)
	signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA1, sum[:])
	if err != nil {
		m.Fatal(err)
	}
	var signed bytes.Buffer
	packed := gzip.NewWriter(&signed)
	entries := tar.NewWriter(packed)
	header := &tar.Header{Name: ".SIGN.RSA.test.rsa.pub", Mode: 0o644, Size: int64(len(signature))}
	_, writeErr := func() (int, error) {
		if err := entries.WriteHeader(header); err != nil {
			return 0, err
		}
		return entries.Write(signature)
	}()
	if err := errors.Join(writeErr, entries.Flush(), packed.Close()); err != nil {
		m.Fatal(err)
	}
	if err := os.WriteFile(indexes[0], append(signed.Bytes(), index...), 0o644); err != nil {
		m.Fatal(err)
	}
}

// rpmLock locks the database of rpm as rpm does, for longer than the test takes.
const rpmLock = `exec perl -e 'use Fcntl; $| = 1; open(F, "+>>", "/var/lib/rpm/.rpm.lock"); my $l = pack("s s x4 q ` +
	`q i x4", F_WRLCK, 0, 0, 0, 0); fcntl(F, F_SETLK, $l) or die; print "locked\n"; sleep 60'`

func families() []family {
	// Debian's rpm has its database in the home directory, since it is not Debian's own.
	const database = `mkdir -p /etc/rpm; echo '%_dbpath /var/lib/rpm' > /etc/rpm/macros; `
	const query = `rpm -qa --queryformat '%{NAME} %{VERSION}-%{RELEASE}\n' | sort`
	return []family{
		{
			name: "dnf", release: "ID=fedora\nVERSION_ID=40\n", format: "rpm",
			packages: []string{"dnf", "dnf-plugins-core", "rpm", "createrepo-c"},
			prepare:  database + `rm -f /etc/dnf/plugins/local.conf; mkdir -p /etc/yum.repos.d`,
			index:    "createrepo_c -q /srv/repository", query: query, vercmp: rpmOrder, parts: rpmParts(),
			lock: rpmLock, removing: true,
			repo: []any{"name", "test", "humanname", "Test", "baseurl", "file:///srv/repository",
				"gpgcheck", 0, "enabled", true},
		},
		{
			name: "zypper", release: "ID=opensuse-leap\nID_LIKE=\"suse opensuse\"\n", format: "rpm",
			packages: []string{"zypper", "rpm", "createrepo-c"},
			prepare:  database + "mkdir -p /etc/zypp/repos.d", index: "createrepo_c -q /srv/repository", query: query,
			vercmp: rpmOrder, parts: rpmParts(), lock: rpmLock, removing: true,
			repo: []any{"name", "test", "humanname", "Test", "baseurl", "file:///srv/repository",
				"gpgcheck", false, "refresh", true},
		},
		{
			name: "pacman", release: "ID=arch\n", format: "archlinux",
			packages: []string{"pacman-package-manager", "libarchive-tools", "makepkg"},
			prepare:  `printf '[options]\nArchitecture = auto\nSigLevel = Never\n' > /etc/pacman.conf; mkdir -p /var/lib/pacman`,
			index:    pacmanIndex, query: `pacman -Q | sort`,
			vercmp: `while read a b; do vercmp $a $b; done < /tmp/pairs`,
			parts:  anyOrder("1", "0", "10", "01", ".", "-", "_", "a", "rc", "z", "..", "+"),
			lock:   `touch /var/lib/pacman/db.lck; echo locked; sleep 60`, single: true,
			repo: []any{"name", "test", "server", "file:///srv/repository"},
		},
		{
			name: "apk", release: "ID=alpine\n", format: "apk", packages: []string{"ca-certificates"}, choosy: true,
			client: "CORPUS_TEST_APK", target: "/sbin/apk", sign: signIndex,
			prepare: `mkdir -p /srv/repository/$(uname -m); apk add --initdb; mkdir -p /etc/apk; touch ` +
				`/etc/apk/repositories; mkdir -p /var/cache/apk; ln -s /var/cache/apk /etc/apk/cache`,
			index: `cd /srv/repository; for f in *.apk; do b=${f%_*.apk}; ln -f $f $(uname -m)/$(echo $b | sed ` +
				`'s/_/-/').apk; done; cd $(uname -m); apk index -q --rewrite-arch $(uname -m) --allow-untrusted -o ` +
				`APKINDEX.tar.gz *.apk`,
			vercmp: `while read a b; do apk version -t $a $b; done < /tmp/pairs`, parts: [][]string{
				{"", "0", "1"}, {"", ".1", ".0", ".10"}, {"", ".2", ".3"}, {"", "a", "z"}, {"", "_rc", "_p", "_alpha2", "_git20"},
				{"", "_p1", "_pre"}, {"", "-r1", "-r0", "-r10"}},
			query: `apk info -v | sed 's/-\([0-9]\)/ \1/' | sort`,
			lock:  `exec flock /lib/apk/db/lock sh -c 'echo locked; exec sleep 60'`,
			repo:  []any{"name", "/srv/repository"},
		},
	}
}

// TestFamilies runs the same scenarios with each package manager.
func TestFamilies(t *testing.T) {
	for _, f := range families() {
		t.Run(f.name, func(t *testing.T) {
			m := start(t, f)
			m.contains(m.converge("repo managed", f.repo...), "repo")
			m.converge("installed", "name", "keeper") // some clients fail without any installed package
			for _, scenario := range []struct {
				name string
				run  func(*familyRoot)
			}{
				{"order", order}, {"first", first}, {"versions", versions}, {"holds", holds},
				{"dependencies", dependencies}, {"files", sources},
				{"everything", everything}, {"rollbacks", rollbacks}, {"downloads", downloads},
				{"errors", mistakes}, {"lock", locked},
			} {
				t.Run(scenario.name, func(t *testing.T) { scenario.run(&familyRoot{t, f, m.root}) })
			}
		})
	}
}

// rpmOrder makes rpm compare versions. rpm.vercmp does not split epoch and release.
const rpmOrder = `echo 'for l in io.lines("/tmp/pairs") do local a, b = l:match("(%S+) (%S+)"); print(rpm.vercmp(a, ` +
	`b) .. string.char(10)) end' > /tmp/order.lua; rpm --eval '%{lua: dofile("/tmp/order.lua")}'`

// pacmanIndex does the work of repo-add, which needs a mounted /proc. It keeps the last version of each
// package.
const pacmanIndex = `cd /srv/repository; rm -rf db test.db; mkdir db
for f in *.pkg.tar.zst; do
  name=${f%-*-*-*}; rm -rf db/$name-[0-9]*; d=db/${f%-any.pkg.tar.zst}; mkdir $d; bsdtar -xOf $f .PKGINFO > info
  value() { sed -n "s/^$1 = //p" info; }
  { printf '%%FILENAME%%\n%s\n\n%%NAME%%\n%s\n\n%%VERSION%%\n%s\n\n%%CSIZE%%\n%s\n\n%%ARCH%%\nany\n\n' \
      $f $(value pkgname) $(value pkgver) $(stat -c %s $f)
    if grep -q ^depend info; then printf '%%DEPENDS%%\n'; value depend; echo; fi
    if grep -q ^provides info; then printf '%%PROVIDES%%\n'; value provides; echo; fi; } > $d/desc
done
bsdtar -czf test.db -C db $(ls db)`

func rpmParts() [][]string {
	return anyOrder("1", "0", "10", "01", ".", "_", "a", "rc", "Z", "..", "~", "^", "+", "git")
}

// anyOrder returns the parts for versions of up to five parts in any order.
func anyOrder(parts ...string) [][]string {
	return slices.Repeat([][]string{append(parts, "", "")}, 5)
}
