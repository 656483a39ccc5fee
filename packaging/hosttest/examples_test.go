//go:build hosts

package hosttest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// rpmHost returns a Debian with the package manager rpm, whose own database is empty.
func rpmHost() lab.Base {
	return lab.Base{Suite: lab.Suites()[0], Packages: []string{"curl", "rpm"}}
}

// TestPackagesOfTheExampleRun installs the packages of the Go service of docs/examples.md on booted hosts: each starts
// after its installation, and responds. TestExampleServesItsVersion tests the deploy by an agent.
func TestPackagesOfTheExampleRun(t *testing.T) {
	dir := t.TempDir()
	file := func(version, ending string) string { return filepath.Join(dir, "hello-"+version+ending) }
	for _, version := range []string{"1.0", "1.1"} {
		source := filepath.Join(dir, "hello")
		run(t, "rm", "-rf", source)
		run(t, "cp", "-r", demo+"/hello", source)
		if err := os.WriteFile(source+"/VERSION", []byte(version+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		newStore(t).corpus("build", source, "--version", version, "-o", file(version, ".deb"), "-o", file(version, ".rpm"),
			"-o", file(version, ".oci.tar"))
	}
	h := lab.Boot(t, lab.Options{Hostname: "plain", Base: rpmHost()})
	for _, version := range []string{"1.0", "1.1"} {
		h.Copy(file(version, ".deb"), "/root/"+version+".deb")
		h.Copy(file(version, ".rpm"), "/root/"+version+".rpm")
	}
	for _, with := range []struct{ name, install, upgrade, remove, again string }{
		{"deb", "apt-get install -y /root/1.0.deb", "apt-get install -y /root/1.1.deb", "apt-get remove -y hello",
			"apt-get purge -y hello"},
		{"rpm", "rpm -i --nodeps /root/1.0.rpm", "rpm -U --nodeps /root/1.1.rpm", "rpm -e hello",
			"rm -f /etc/hello/hello.env*"},
	} {
		t.Run(with.name, func(t *testing.T) { packaged(t, h, with.install, with.upgrade, with.remove, with.again) })
	}
	t.Run("image", func(t *testing.T) { image(t, h, file("1.0", ".oci.tar")) })
}

// packaged installs, upgrades, removes and purges the service's package.
func packaged(t *testing.T, h *lab.Host, install, upgrade, remove, purge string) {
	h.Sh(install)
	answersHello(t, h, "1.0")
	if got := h.Sh(
		"systemctl is-enabled hello.service; readlink /proc/$(systemctl show -p MainPID --value hello.service)/exe; cat " +
			"/etc/hello/hello.env"); got != "enabled\n/opt/hello/bin/hello\nHELLO_ADDRESS=127.0.0.1:8000" {
		t.Errorf("the service is %s", got)
	}
	h.Sh("sed -i s/8000/8001/ /etc/hello/hello.env")
	h.Sh(upgrade)
	lab.Eventually(t, time.Minute, "the upgrade is running, with the administrator's configuration", func() bool {
		return strings.TrimSpace(h.Run("curl", "-fsS", "-m", "5", "http://127.0.0.1:8001/").Out) == "hello 1.1"
	})
	h.Sh("systemctl disable --now hello.service")
	h.Sh(strings.Replace(upgrade, "1.1", "1.0", 1) + map[bool]string{true: " --allow-downgrades",
		false: " --oldpackage"}[strings.HasPrefix(upgrade, "apt")])
	if got := strings.TrimSpace(h.Run("sh", "-c",
		"systemctl is-enabled hello.service; systemctl is-active hello.service").Out); got != "disabled\ninactive" {
		t.Errorf("after an upgrade, a disabled service is %s", got)
	}
	h.Sh("systemctl enable --now hello.service")
	h.Sh(remove)
	if r := h.Run("sh", "-c", "curl -fsS -m 5 http://127.0.0.1:8001/"); r.Code == 0 ||
		h.Exists("/etc/systemd/system/multi-user.target.wants/hello.service") || h.Exists("/opt/hello") {
		t.Errorf("after the removal, the service answers with %d %s", r.Code, r.Out)
	}
	h.Sh("rm -f /etc/hello/hello.env.rpmsave; " + install + map[bool]string{true: " -o Dpkg::Options::=--force-confnew",
		false: ""}[strings.HasPrefix(install, "apt")])
	lab.Eventually(t, time.Minute, "what comes back is running", func() bool {
		return h.Run("sh", "-c", "curl -fsS -m 5 http://127.0.0.1:8000/ || curl -fsS -m 5 http://127.0.0.1:8001/").Code == 0
	})
	h.Sh(remove)
	h.Sh(purge)
}

// answersHello waits until a version of the service responds.
func answersHello(t *testing.T, h *lab.Host, version string) {
	t.Helper()
	lab.Eventually(t, time.Minute, "hello "+version+" answers", func() bool {
		return strings.TrimSpace(h.Run("curl", "-fsS", "-m", "5", "http://127.0.0.1:8000/").Out) == "hello "+version
	})
}

// image runs the command of an image in the filesystem of the image.
func image(t *testing.T, h *lab.Host, file string) {
	dir := t.TempDir()
	run(t, "tar", "-xf", file, "-C", dir)
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	list, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	img, err := index.Image(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	flat, err := os.Create(filepath.Join(dir, "flat.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer flat.Close()
	if _, err := flat.ReadFrom(mutate.Extract(img)); err != nil {
		t.Fatal(err)
	}
	h.Copy(flat.Name(), "/root/flat.tar")
	h.Sh("mkdir /root/image && tar -xf /root/flat.tar -C /root/image && cat /root/image/etc/hello/hello.env")
	h.Sh("systemd-run --unit image -p RootDirectory=/root/image " + strings.Join(config.Config.Cmd, " "))
	answersHello(t, h, "1.0")
	if got := h.Sh("ss -Hltn sport = :8000"); !strings.Contains(got, "*:8000") {
		t.Errorf("the image listens at %s, which other hosts cannot reach", got)
	}
}
