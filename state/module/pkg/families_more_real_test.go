//go:build integration

package pkg_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goreleaser/nfpm/v2"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/image"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// rollbacks has runs install, upgrade, hold and remove packages, and restores the packages after each run as a rollback
// does.
func rollbacks(m *familyRoot) {
	m.Helper()
	ctx := context.Background()
	images := func() map[string]image.Image {
		m.Helper()
		all := map[string]image.Image{}
		for _, name := range []string{"foo", "bar", "baz"} {
			i, err := image.Taker{Host: m.run()}.Take(ctx, host.Subject{Kind: host.KindPackage, Name: name})
			if err != nil {
				m.Fatal(err)
			}
			all[name] = i
		}
		return all
	}
	back := func(want map[string]image.Image) map[string]error {
		m.Helper()
		lost := image.Putter{Host: m.run()}.Packages(ctx, want)
		for name, was := range want {
			if now := images()[name]; lost[name] == nil && !now.Same(was) {
				m.Errorf("package %s is %+v, want %+v", name, now, was)
			}
		}
		return lost
	}
	m.old()
	before := images()
	m.converge("installed", "pkgs", value.NewList("bar", "baz"))
	if m.single { // the repository has only the newest version of foo, which bar requires
		if lost := back(before); len(lost) != 1 || lost["foo"] == nil || !strings.Contains(lost["foo"].Error(),
			"no repository of this host has version "+m.version("1.0", "1")+" any more") {
			m.Errorf("lost are %v", lost)
		}
	} else {
		if lost := back(before); len(lost) > 0 {
			m.Errorf("lost are %v", lost)
		}
		m.want("foo " + m.version("1.0", "1"))
		m.converge("held", "name", "foo")
		before = images()
		m.converge("latest", "name", "foo")
		m.converge("unheld", "name", "foo")
		if lost := back(before); len(lost) > 0 {
			m.Errorf("on hold, lost are %v", lost)
		}
		m.converge("unheld", "name", "foo")
	}
	before = images()
	m.converge("removed", "name", "foo")
	if lost := back(before); len(lost) > 0 && !m.single {
		m.Errorf("removed, lost are %v", lost)
	}
	m.converge("removed", "pkgs", value.NewList("foo", "bar", "baz"))
}

// downloads downloads package files from another host without installing them.
func downloads(m *familyRoot) {
	ctx, args := context.Background(), value.NewMap("name", "foo", "refresh", false)
	server := httptest.NewServer(http.FileServer(http.Dir(m.root + "/srv/repository")))
	defer server.Close()
	remote := slices.Clone(m.repo)
	switch m.name {
	case "pacman":
		remote[3] = server.URL
	case "apk":
		remote[1] = server.URL
		m.converge("repo absent", "name", "/srv/repository")
		defer m.converge("repo managed", m.repo...)
		defer m.converge("repo absent", "name", server.URL)
	default:
		remote[5] = server.URL
	}
	m.converge("repo managed", remote...)
	if m.name != "apk" {
		defer m.converge("repo managed", m.repo...)
	}
	m.sh("rm -rf /var/cache/dnf/*/packages /var/cache/zypp/packages/* /var/cache/pacman/pkg/* /var/cache/apk/foo*.apk")
	state, diff := hosttest.Look(m.T, m.run(), m.table("downloaded"), "downloaded", args)
	if _, err := state.Apply(ctx, m.run(), diff); err != nil || diff.Empty() {
		m.Fatalf("%s: %v (hint: %s)", diff.Comment, err, diag.HintOf(err))
	}
	if _, again := hosttest.Look(m.T, m.run(), m.table("downloaded"), "downloaded", args); !again.Empty() {
		m.Errorf("a second run would download again: %s", again.Comment)
	}
	m.want("")
}

// key creates a signing key and returns its GnuPG home and the files of its two halves.
func key(m *familyRoot) (home, secret, public string) {
	m.Helper()
	home, err := os.MkdirTemp("", "gpg") // not t.TempDir, as the path of a socket has at most 108 bytes
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(func() {
		_ = exec.Command("gpgconf", "--homedir", home, "--kill", "all").Run() // stop the agent of gpg
		_ = os.RemoveAll(home)
	})
	secret, public = filepath.Join(home, "secret.asc"), filepath.Join(home, "public.asc")
	gpg(m, home, "--passphrase", "", "--quick-gen-key", "Test <test@example.com>", "rsa3072", "sign", "never")
	gpg(m, home, "--armor", "--output", secret, "--export-secret-keys")
	gpg(m, home, "--armor", "--output", public, "--export")
	return home, secret, public
}

func gpg(m *familyRoot, home string, args ...string) {
	m.Helper()
	cmd := exec.Command("gpg",
		append([]string{"--homedir", home, "--batch", "--yes", "--pinentry-mode", "loopback"}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+home)
	if out, err := cmd.CombinedOutput(); err != nil {
		m.Fatalf("gpg %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (m *familyRoot) copyIn(from, to string) {
	m.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		m.Fatal(err)
	}
	hosttest.Put(m.T, m.root+to, string(data), 0o644)
}

// signedRPMs creates a signed repository in /srv/signed. Its package sig is signed by /srv/signed/key.asc,
// other by a different key, and bare is unsigned.
func signedRPMs(m *familyRoot) {
	home, secret, public := key(m)
	_, another, _ := key(m)
	m.sh("mkdir -p /srv/signed")
	for name, by := range map[string]string{"sig": secret, "other": another, "bare": ""} {
		more := nfpm.Overridables{}
		more.RPM.Signature.KeyFile = by
		file := m.build(name, "1.0", "1", more)
		m.sh("mv " + file + " /srv/signed/")
	}
	m.sh("createrepo_c -q /srv/signed")
	gpg(m, home, "--armor", "--detach-sign", "--output", m.root+"/srv/signed/repodata/repomd.xml.asc", m.root+
		"/srv/signed/repodata/repomd.xml")
	m.copyIn(public, "/srv/signed/key.asc")
	m.copyIn(public, "/srv/signed/repodata/repomd.xml.key")
}

// TestSignedRPMRepositories checks that only packages signed by the key of their repository are installed.
func TestSignedRPMRepositories(t *testing.T) {
	for _, f := range families() {
		if f.format != "rpm" {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			m := start(t, f)
			signedRPMs(m)
			args := []any{"name", "signed", "humanname", "Signed", "baseurl", "file:///srv/signed", "gpgcheck", true, "gpgkey",
				"file:///srv/signed/key.asc", "repo_gpgcheck", true}
			if f.name == "zypper" {
				args = append(args, "gpgautoimport", true)
			}
			m.converge("repo managed", args...)
			m.converge("installed", "name", "sig")
			m.want("sig 1.0-1")
			if f.name == "dnf" { // zypper checks packages only if the index is unsigned
				m.contains(m.fails("installed", "name", "bare", "refresh", false), "sign")
				m.contains(m.fails("installed", "name", "other", "refresh", false), "key")
				m.want("sig 1.0-1")
			}
			m.sh("echo '<!-- changed -->' >> /srv/signed/repodata/repomd.xml; rm -rf /var/cache/dnf /var/cache/zypp")
			warnings, err := m.run().Packages.Refresh(context.Background())
			if err == nil && !strings.Contains(strings.ToLower(strings.Join(warnings, " ")), "signed") {
				m.Errorf("a changed index is accepted: %q", warnings)
			}
		})
	}
}

// TestPrioritiesOfRPMRepositories checks that a package comes from the repository with the best priority, not
// from the one with the newest version, unless the state names another.
func TestPrioritiesOfRPMRepositories(t *testing.T) {
	for _, f := range families() {
		if f.format != "rpm" {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			m := start(t, f)
			m.sh("mkdir -p /srv/first; mv " + m.add("foo", "0.9", "1") +
				" /srv/first; createrepo_c -q /srv/first; createrepo_c -q /srv/repository")
			m.converge("repo managed", append(f.repo, "priority", 90)...)
			m.converge("installed", "name", "keeper")
			m.converge("repo managed", "name", "first", "humanname", "First", "baseurl", "file:///srv/first",
				"gpgcheck", false, "priority", 10)
			m.converge("installed", "name", "foo")
			m.want("foo 0.9-1")
			m.converge("removed", "name", "foo")
			m.converge("installed", "name", "foo", "fromrepo", "test")
			m.want("foo 1.0-1")
			if f.name == "dnf" {
				m.contains(m.fails("installed", "name", "bar", "enablerepo", "first"), "enablerepo", "fromrepo")
			}
		})
	}
}

// TestSignedPacmanRepository checks that only packages signed by a trusted key are installed.
func TestSignedPacmanRepository(t *testing.T) {
	for _, f := range families() {
		if f.name != "pacman" {
			continue
		}
		m := start(t, f)
		home, _, public := key(m)
		sign := func(file string) {
			gpg(m, home, "--detach-sign", "--output", m.root+"/srv/repository/"+file+".sig", m.root+"/srv/repository/"+file)
		}
		sign("foo-1.0-1-any.pkg.tar.zst")
		sign("test.db")
		// the signature of another package
		m.sh("cd /srv/repository; cp foo-1.0-1-any.pkg.tar.zst.sig baz-1.0-1-any.pkg.tar.zst.sig")
		trusted := m.root + "/etc/pacman.d/gnupg"
		m.sh("mkdir -p -m 0700 /etc/pacman.d/gnupg; touch /etc/pacman.d/gnupg/pubring.gpg") // as pacman-key --init does
		gpg(m, trusted, "--import", public)
		owner := exec.Command("sh", "-c", "gpg --homedir "+trusted+
			" --list-keys --with-colons | sed -n 's/^fpr:*\\([0-9A-F]*\\):/\\1:6:/p' | gpg --homedir "+trusted+
			" --import-ownertrust; gpgconf --homedir "+trusted+" --kill all")
		owner.Env = append(os.Environ(), "HOME="+home)
		if out, err := owner.CombinedOutput(); err != nil {
			t.Fatalf("trusting the key: %v\n%s", err, out)
		}
		m.converge("repo managed", append(f.repo, "siglevel", "Required")...)
		m.converge("installed", "name", "foo")
		m.want("foo 1.0-1")
		m.contains(m.fails("installed", "name", "keeper", "refresh", false), "signature")
		m.contains(m.fails("installed", "name", "baz", "refresh", false), "signature")
		m.want("foo 1.0-1")
	}
}
