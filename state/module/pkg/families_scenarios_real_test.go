//go:build integration

package pkg_test

import (
	"bufio"
	"context"
	"errors"
	mathrand "math/rand/v2"
	"os/exec"
	"strings"

	"github.com/goreleaser/nfpm/v2"

	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// order compares the order of some thousands of versions with that of the client.
func order(m *familyRoot) {
	seed := mathrand.New(mathrand.NewPCG(1, 2))
	version := func() string {
		text := "1"
		for _, choice := range m.parts {
			text += choice[seed.IntN(len(choice))]
		}
		return text
	}
	var pairs [][2]string
	var list strings.Builder
	for range 1500 {
		pairs = append(pairs, [2]string{version(), version()})
		list.WriteString(pairs[len(pairs)-1][0] + " " + pairs[len(pairs)-1][1] + "\n")
	}
	hosttest.Put(m.T, m.root+"/tmp/pairs", list.String(), 0o644)
	answers := strings.Fields(m.sh(m.vercmp))
	if len(answers) != len(pairs) {
		m.Fatalf("%d answers to %d pairs", len(answers), len(pairs))
	}
	packages, wrong := m.run().Packages, 0
	for i, pair := range pairs {
		want := map[string]int{"<": -1, ">": 1, "-1": -1, "1": 1}[answers[i]]
		if got := packages.Compare(pair[0], pair[1]); got != want && wrong < 20 {
			m.Errorf("comparing %s with %s gives %d, and the client says %s", pair[0], pair[1], got, answers[i])
			wrong++
		}
	}
}

// first installs packages of which only one version exists.
func first(m *familyRoot) {
	m.contains(m.converge("installed", "name", "foo"), "foo", "1.0-")
	m.want("foo " + m.version("1.0", "1"))
	if m.choosy {
		m.contains(m.fails("installed", "name", "virt", "refresh", false), "baz")
		m.converge("installed", "name", "baz")
		m.contains(m.converge("installed", "name", "virt")+"nothing", "nothing")
	} else {
		m.contains(m.converge("installed", "name", "virt"), "baz")
	}
	m.converge("removed", "pkgs", value.NewList("foo", "baz", "never-heard-of"))
	m.want("")
}

// version formats a version in the way of the family.
func (m *familyRoot) version(version, release string) string {
	if m.format == "apk" {
		return version + "-r" + release
	}
	return version + "-" + release
}

// versions upgrades and downgrades a package.
func versions(m *familyRoot) {
	if !m.single {
		m.add("foo", "2.0", "1")
	}
	m.add("foo", "2.0", "2")
	m.reindex()
	old, newer, newest := m.version("1.0", "1"), m.version("2.0", "1"), m.version("2.0", "2")
	if m.single {
		m.old()
		m.converge("latest", "name", "foo")
		m.want("foo " + newest)
		m.contains(m.fails("installed", "name", "foo", "version", newer, "refresh", false), newer)
		m.old()
		return
	}
	m.converge("installed", "name", "foo", "version", newer)
	m.want("foo " + newer)
	m.converge("installed", "name", "foo", "version", old)
	m.want("foo " + old)
	m.converge("installed", "name", "foo", "version", ">=1.5,<"+newest)
	m.want("foo " + newer)
	m.converge("latest", "name", "foo")
	m.want("foo " + newest)
	m.old()
}

// old installs the first version of foo and takes it off hold.
func (m *familyRoot) old() {
	m.Helper()
	if m.single {
		m.converge("installed", "name", "x", "skip_verify", true,
			"sources", value.NewList(value.NewMap("foo", m.add("foo", "1.0", "1"))))
	} else {
		m.converge("installed", "name", "foo", "version", "1.0*")
	}
	m.converge("unheld", "name", "foo")
	m.want("foo " + m.version("1.0", "1"))
}

// holds checks that a package on hold stays at its version unless a state names it.
func holds(m *familyRoot) {
	old, newest := m.version("1.0", "1"), m.version("2.0", "2")
	m.converge("held", "name", "foo")
	m.converge("uptodate", "name", "all", "refresh", false)
	m.want("foo " + old)
	m.contains(m.fails("installed", "name", "bar", "refresh", false), "foo", "hold")
	m.converge("latest", "name", "foo")
	m.want("foo " + newest)
	if v, err := m.run().Packages.Installed(); err != nil || !v.Held("foo") {
		m.Errorf("foo is no longer on hold: %v", err)
	}
	m.converge("unheld", "name", "foo")
	m.old()
}

// dependencies checks that dependencies are installed and removed together.
func dependencies(m *familyRoot) {
	m.contains(m.converge("installed", "name", "bar"), "bar", "foo")
	m.want("bar " + m.version("1.0", "1") + " foo " + m.version("2.0", "2"))
	if !m.removing {
		m.contains(m.fails("removed", "name", "foo"), "bar")
		m.converge("removed", "pkgs", value.NewList("foo", "bar"))
	} else {
		m.contains(m.converge("purged", "name", "foo"), "bar")
	}
	m.want("")
}

// sources installs unsigned package files.
func sources(m *familyRoot) {
	file := m.build("qux", "1.0", "1", nfpm.Overridables{})
	newer := m.build("qux", "2.0", "1", nfpm.Overridables{})
	for _, step := range []struct{ url, version string }{{file, "1.0"}, {"salt:/" + newer, "2.0"}, {file, "1.0"}} {
		m.converge("installed", "name", "x", "skip_verify", true, "sources", value.NewList(value.NewMap("qux", step.url)))
		m.want("qux " + m.version(step.version, "1"))
	}
	m.contains(m.fails("installed", "name", "x", "sources", value.NewList(value.NewMap("foo", file))), "qux")
	m.converge("removed", "name", "qux")
}

// everything upgrades all packages, reinstalls and downloads.
func everything(m *familyRoot) {
	m.old()
	m.contains(m.converge("uptodate", "name", "all"), "foo", m.version("2.0", "2"))
	h, args := m.run(), value.NewMap("name", "foo", "reinstall", true, "refresh", false)
	again, diff := hosttest.Look(m.T, h, m.table("installed"), "installed", args)
	if _, err := again.Apply(context.Background(), h, diff); err != nil || diff.Empty() {
		m.Errorf("installing installed packages: %v, %v", diff, err)
	}
	m.converge("removed", "name", "foo")
}

// mistakes checks that errors have a useful hint.
func mistakes(m *familyRoot) {
	m.contains(m.fails("installed", "name", "nope", "refresh", false), "nope", "pkgrepo")
	m.contains(m.fails("installed", "name", "foo", "version", "9.9", "refresh", false), "9.9")
	m.contains(m.fails("installed", "name", "broken", "refresh", false), "nothere")
	m.contains(m.fails("installed", "name", "--root=/x", "refresh", false), "no package name")
	m.want("")
}

// locked waits for the lock of another process until the wait times out.
func locked(m *familyRoot) {
	if m.lock == "" {
		return
	}
	holder := exec.Command("chroot", m.root, "sh", "-c", m.lock)
	out, err := holder.StdoutPipe()
	if err != nil {
		m.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		m.Fatal(err)
	}
	defer func() { _ = errors.Join(holder.Process.Kill(), holder.Wait()) }() // Wait reports that it was killed
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "locked\n" {
		m.Fatalf("the lock could not be taken: %q, %v", line, err)
	}
	m.contains(m.fails("installed", "name", "foo", "refresh", false), "lock")
	m.want("")
}
