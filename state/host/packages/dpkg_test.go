package packages

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
)

// rootWith returns a host with the given files.
func rootWith(t *testing.T, files map[string]string) *host.Host {
	t.Helper()
	h := hosttest.Root(t, files)
	h.Packages = New(h, host.Options{Root: "/relocated"})
	return h
}

const status = `Package: dpkg
Status: install ok installed
Priority: required
Architecture: amd64
Version: 1.21.22
Description: package manager
 Package: nothing

Package: foo
Status: hold ok installed
Architecture: all
Provides: virt, web-server (= 2.0)
Version: 1:1.0-2

Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.36

Package: libc6
Status: install ok triggers-pending
Architecture: i386
Version: 2.35

Package: old
Status: deinstall ok config-files
Architecture: all
Version: 0.9

Package: half
Status: install ok half-configured
Architecture: all
Version: 1

Package: going
Status: purge ok installed
Architecture: all
Version: 3

Package: later
Status: hold ok not-installed
Architecture: all
`

func TestInventory(t *testing.T) {
	h := rootWith(t, map[string]string{dpkgStatus: status})
	v, err := h.Packages.Installed()
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"dpkg", "foo", "going", "libc6", "libc6:i386"}; !reflect.DeepEqual(v.Names(), want) {
		t.Errorf("installed are %v, want %v", v.Names(), want)
	}
	for name, want := range map[string]string{"foo": "1:1.0-2", "libc6": "2.36", "libc6:i386": "2.35", "old": "",
		"half": "", "later": ""} {
		if got := v.Version(name); got != want {
			t.Errorf("%s is at %q, want %q", name, got, want)
		}
	}
	if v.Leftover("old") != "0.9" || v.Leftover("foo") != "" {
		t.Errorf("leftovers are %q and %q", v.Leftover("old"), v.Leftover("foo"))
	}
	if want := []string{"foo", "later"}; !reflect.DeepEqual(v.Holds(), want) {
		t.Errorf("on hold are %v, want %v", v.Holds(), want)
	}
	if want := []string{"foo"}; !reflect.DeepEqual(v.Providers("web-server"), want) ||
		!reflect.DeepEqual(v.Providers("virt"), want) {
		t.Errorf("providers are %v and %v", v.Providers("web-server"), v.Providers("virt"))
	}
	if v.ListName("foo:amd64") != "foo" || v.ListName("foo:all") != "foo" || v.ListName("foo:i386") != "foo:i386" {
		t.Error("the native architecture should be removed from a name, and others kept")
	}
	if v.Native != "amd64" || v.Interrupted {
		t.Errorf("native %q, interrupted %t", v.Native, v.Interrupted)
	}
}

func TestInventoryOfImagesAndInterruptions(t *testing.T) {
	h := rootWith(t, map[string]string{
		dpkgStatusDir + "/base":         "Package: base-files\nVersion: 12\nArchitecture: arm64\n",
		dpkgStatusDir + "/base.md5sums": "Package: no\nVersion: 1\n",
		dpkgStatus:                      "Package: foo\nStatus: install ok installed\nArchitecture: arm64\nVersion: 1\n",
		dpkgUpdatesDir + "/0001":        "Package: foo\nStatus: install ok unpacked\nArchitecture: arm64\nVersion: 2\n",
		dpkgUpdatesDir + "/tmp.i":       "Package: other\nStatus: install ok installed\nVersion: 2\n",
	})
	v, err := h.Packages.Installed()
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"base-files"}; !reflect.DeepEqual(v.Names(), want) {
		t.Errorf("installed are %v, want %v", v.Names(), want)
	}
	if !v.Interrupted {
		t.Error("an update that is not merged means that dpkg was interrupted")
	}
}

func TestInventoryWithoutPackages(t *testing.T) {
	v, err := rootWith(t, nil).Packages.Installed()
	if err != nil || len(v.Names()) != 0 {
		t.Errorf("a host without a database has packages %v, %v", v, err)
	}
}

func TestChanges(t *testing.T) {
	before := host.NewInventory("amd64", []host.Package{
		{Name: "same", Version: "1", State: host.InstalledPackage}, {Name: "up", Version: "1", State: host.InstalledPackage},
		{Name: "gone", Version: "1", State: host.InstalledPackage}, {Name: "purged", Version: "3", State: host.ConfigFiles},
		{Name: "left", Version: "4", State: host.InstalledPackage},
	})
	after := host.NewInventory("amd64", []host.Package{
		{Name: "same", Version: "1", State: host.InstalledPackage}, {Name: "up", Version: "2", State: host.InstalledPackage},
		{Name: "new", Version: "1", State: host.InstalledPackage}, {Name: "left", Version: "4", State: host.ConfigFiles},
	})
	want := []host.PackageChange{
		{Name: "gone", Old: "1"}, {Name: "left", Old: "4"}, {Name: "new", New: "1"}, {Name: "purged", Old: "3", Purged: true},
		{Name: "up", Old: "1", New: "2"},
	}
	if got := before.Changes(after); !reflect.DeepEqual(got, want) {
		t.Errorf("changes are %+v, want %+v", got, want)
	}
}

// bigStatus returns a status file of the given size in bytes, with the fields of real ones.
func bigStatus(size int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b,
			"Package: package-%d\nStatus: install ok installed\nPriority: optional\nSection: libs\nInstalled-Size: 686\n"+
				"Maintainer: Somebody <somebody@example.com>\nArchitecture: %s\nMulti-Arch: foreign\nVersion: 1.%d-1+deb12u1\n"+
				"Depends: libc6 (>= 2.34), package-%d\nConffiles:\n /etc/package-%d.conf cc3493ecd2d09837ffdcc3e25fdfff18\n"+
				"Description: a package\n%s\n\n", i, []string{"all", "amd64", "amd64"}[i%3], i, i/2, i,
			strings.Repeat(" It does what it is for and nothing else.\n", 8))
	}
	return b.Bytes()
}

func BenchmarkParseDpkg2MB(b *testing.B) {
	data := bigStatus(2 << 20)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		if err := parseDpkg(bytes.NewReader(data), func(host.Package) { n++ }); err != nil || n < 1000 {
			b.Fatal(n, err)
		}
	}
}

func BenchmarkInventory2MB(b *testing.B) {
	dir := b.TempDir()
	if err := os.MkdirAll(dir+"/var/lib/dpkg", 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(dir+dpkgStatus, bigStatus(2<<20), 0o644); err != nil {
		b.Fatal(err)
	}
	h, err := host.Open(host.Options{Root: dir}, host.Caches{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := readDpkg(h.Files); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzParseDpkg(f *testing.F) {
	f.Add([]byte(status))
	f.Add([]byte("Package: a\nStatus:\n\n\nVersion: 1"))
	f.Add([]byte("Package: " + strings.Repeat("x", 70<<10) + "\nVersion: 1\n\nPackage: b\n"))
	f.Add([]byte("Status: install\nPackage: a\nProvides: (, (= ,b (=1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var packages []host.Package
		if err := parseDpkg(bytes.NewReader(data), func(p host.Package) { packages = append(packages, p) }); err != nil {
			t.Errorf("reading memory failed: %v", err)
		}
		for _, p := range packages {
			if p.Name == "" {
				t.Errorf("a package without a name: %+v", p)
			}
		}
		host.NewInventory("amd64", packages)
	})
}
