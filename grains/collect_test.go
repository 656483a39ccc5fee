package grains_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// hosts is a directory of host trees, each with its expected grains.
const hosts = "../testdata/grains"

// collect gathers facts on a machine without errors.
func collect(t testing.TB, s grains.Source) *grains.Facts {
	facts, err := grains.Collect(context.Background(), s)
	if err != nil {
		t.Error(err)
		return &grains.Facts{}
	}
	return facts
}

func source(tree string) grains.Source {
	env := map[string]string{"PATH": "/usr/sbin:/usr/bin", "SHELL": "/bin/bash", "LANG": "de_DE.utf8"}
	return grains.Source{
		Machine: tree,
		Getenv:  func(name string) string { return env[name] },
		Interfaces: func() ([]grains.Interface, error) {
			return []grains.Interface{
				{Name: "lo", Hardware: "00:00:00:00:00:00", IPv4: addrs("127.0.0.1"), IPv6: addrs("::1")},
				{Name: "eth0", Hardware: "02:fc:00:00:00:01", IPv4: addrs("10.0.0.20"), IPv6: addrs("fe80::1"),
					Secondary: addrs("10.0.0.3")},
			}, nil
		},
		Resolver: &resolver{},
	}
}

func addrs(texts ...string) []netip.Addr {
	var all []netip.Addr
	for _, t := range texts {
		all = append(all, netip.MustParseAddr(t))
	}
	return all
}

// resolver is a fake name server.
type resolver struct {
	name    string
	addrs   []netip.Addr
	hang    bool
	queries []string
}

func (r *resolver) ask(ctx context.Context, query string) error {
	r.queries = append(r.queries, query)
	if r.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	if r.name == "" && r.addrs == nil {
		return errors.New("no such host")
	}
	return nil
}

func (r *resolver) LookupCNAME(ctx context.Context, host string) (string, error) {
	return r.name, r.ask(ctx, "name "+host)
}

func (r *resolver) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	return r.addrs, r.ask(ctx, network+" "+host)
}

func TestGrainsMatchSalt(t *testing.T) {
	trees, err := filepath.Glob(hosts + "/*/want.json")
	if err != nil || len(trees) < 30 {
		t.Fatalf("%d host trees, %v", len(trees), err)
	}
	for _, want := range trees {
		dir := filepath.Dir(want)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			got := collect(t, source(dir+"/root")).Map()
			for name, v := range readJSON(t, want).All() {
				if g, _ := got.Get(name.(string)); !value.Equal(plain(g), v) {
					t.Errorf("%s is %s, want %s", name, value.Repr(g), value.Repr(v))
				}
			}
		})
	}
}

// plain converts tuples to lists, as in JSON.
func plain(v any) any {
	if t, ok := v.(value.Tuple); ok {
		return value.NewList(t...)
	}
	return v
}

func readJSON(t *testing.T, file string) *value.Map {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	v, err := value.FromJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	return v.(*value.Map)
}

// TestVersionPartsAreATuple checks this because formulas index osrelease_info and print it, so it has to be a tuple as
// in Salt.
func TestVersionPartsAreATuple(t *testing.T) {
	got := collect(t, source(hosts+"/centos-7/root")).Map().Value("osrelease_info")
	if value.Repr(got) != "(7, 9, 2009)" {
		t.Errorf("osrelease_info prints %s", value.Repr(got))
	}
}

// TestGrainMapsAreCopies checks that a template that changes a grain changes its own copy.
func TestGrainMapsAreCopies(t *testing.T) {
	facts := collect(t, source(hosts+"/debian-12-physical/root"))
	facts.Map().Value("ipv4").(*value.List).Append("changed")
	if got := value.Repr(facts.Map().Value("ipv4")); strings.Contains(got, "changed") {
		t.Errorf("ipv4 is %s", got)
	}
}

func TestMissingVersionHasNoDerivedGrains(t *testing.T) {
	got := collect(t, source(hosts+"/arch/root")).Map()
	for _, name := range []string{"osfinger", "osmajorrelease", "osrelease_info"} {
		if got.Has(name) {
			t.Errorf("a rolling release has %s %v", name, got.Value(name))
		}
	}
}

func TestUnreadableFactsAreOmitted(t *testing.T) {
	got := collect(t, source(t.TempDir())).Map()
	for _, name := range []string{"uuid", "serialnumber", "productname", "machine_id", "dns", "systemd", "selinux",
		"master"} {
		if got.Has(name) {
			t.Errorf("an empty tree has %s %v", name, got.Value(name))
		}
	}
	for name, want := range map[string]any{"num_cpus": 0, "mem_total": 0, "cpu_model": "Unknown", "init": "unknown",
		"virtual": "physical", "id": "localhost"} {
		if !value.Equal(got.Value(name), want) {
			t.Errorf("%s is %v, want %v", name, got.Value(name), want)
		}
	}
}

func TestRelocatedRootGivesTheDistributionOnly(t *testing.T) {
	s := source(hosts + "/ubuntu-22.04-on-ec2/root")
	s.Root = hosts + "/rocky-8/root"
	got := collect(t, s).Map()
	for name, want := range map[string]any{
		"os": "Rocky", "osfinger": "Rocky Linux-8", "osarch": "x86_64", // the root's
		"kernelrelease": "6.5.0-1014-aws", "virtual": "Nitro", "num_cpus": 2, "domain": "example.com", // the machine's
	} {
		if !value.Equal(got.Value(name), want) {
			t.Errorf("%s is %v, want %v", name, got.Value(name), want)
		}
	}
	if got.Has("systemd") {
		t.Error("a root without systemd has the machine's systemd")
	}
}

func TestRelocatedRootWithoutReleaseFileIsTheMachines(t *testing.T) {
	s := source(hosts + "/ubuntu-22.04-on-ec2/root")
	s.Root = t.TempDir()
	if got := collect(t, s).Map().Value("osfinger"); got != "Ubuntu-22.04" {
		t.Errorf("osfinger is %v", got)
	}
}

// TestTimeZoneOfARelocatedRoot checks that the link to the time zone, which is absolute on most systems, is resolved
// inside a relocated root.
func TestTimeZoneOfARelocatedRoot(t *testing.T) {
	root := t.TempDir()
	write(t, root, "etc/os-release", "ID=debian\n")
	// One zone, an hour east of Greenwich, without daylight saving time: no transitions, one type of time, four letters
	// of abbreviations.
	header := "TZif\x00" + strings.Repeat("\x00", 15+4*4) + "\x00\x00\x00\x01\x00\x00\x00\x04"
	write(t, root, "usr/share/zoneinfo/Test/East", header+"\x00\x00\x0e\x10\x00\x00EAS\x00")
	if err := os.Symlink("/usr/share/zoneinfo/Test/East", filepath.Join(root, "etc/localtime")); err != nil {
		t.Fatal(err)
	}
	s := source(t.TempDir())
	s.Root = root
	info := collect(t, s).Map().Value("locale_info").(*value.Map)
	if info.Value("timezone") != "EAS" {
		t.Errorf("timezone is %v, want EAS", info.Value("timezone"))
	}
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	file := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestGrainsOfTheProcess(t *testing.T) {
	root := t.TempDir()
	write(t, root, "etc/passwd", fmt.Sprintf("x:x:1x:1::/:\nagent:x:%d:1::/:/bin/sh\n", os.Getuid()))
	for _, c := range []struct{ all, lang, language string }{
		{"", "", "{'defaultlanguage': 'en_US', 'defaultencoding': 'UTF-8', "},
		{"", "C.utf8", "{'defaultlanguage': 'en_US', 'defaultencoding': 'UTF-8', "},
		{"C", "de_DE.UTF-8", "{'defaultlanguage': None, 'defaultencoding': None, "},
		{"", "fr_FR.ISO8859-15", "{'defaultlanguage': 'fr_FR', 'defaultencoding': 'ISO8859-15', "},
	} {
		s := source(root)
		env := map[string]string{"LC_ALL": c.all, "LANG": c.lang}
		s.Getenv = func(name string) string { return env[name] }
		s.ID = "given"
		got := collect(t, s).Map()
		if info := value.Repr(got.Value("locale_info")); !strings.HasPrefix(info, c.language) {
			t.Errorf("LC_ALL=%s LANG=%s: locale_info is %s", c.all, c.lang, info)
		}
		// The last number is the SHA-256 of "given" modulo 2 to the 31st.
		for name, want := range map[string]any{"username": "agent", "groupname": strconv.Itoa(os.Getgid()),
			"shell": "/bin/sh", "pid": os.Getpid(), "id": "given", "server_id": 688156256} {
			if !value.Equal(got.Value(name), want) {
				t.Errorf("%s is %v, want %v", name, got.Value(name), want)
			}
		}
	}
}

func TestProcessorsAreCountedWhereItIsCheap(t *testing.T) {
	root := t.TempDir()
	write(t, root, "sys/devices/system/cpu/online", "0-3,6,8-15\n")
	one := "model name\t: Big Iron\nflags\t\t: fpu " + strings.Repeat("flag ", 500) + "last\n\n"
	write(t, root, "proc/cpuinfo", strings.Repeat("processor\t: 1\n"+one, 300))
	got := collect(t, source(root)).Map()
	flags, _ := got.Value("cpu_flags").(*value.List)
	if got.Value("num_cpus") != 13 || got.Value("cpu_model") != "Big Iron" || flags.Len() != 502 {
		t.Errorf("%v processors, %v, %d flags", got.Value("num_cpus"), got.Value("cpu_model"), flags.Len())
	}
}

func TestVirtualHardware(t *testing.T) {
	const dmi, clocks = "sys/class/dmi/id/", "sys/devices/system/clocksource/clocksource0/available_clocksource"
	for _, c := range []struct {
		name          string
		files         map[string]string
		kind, subtype string
	}{
		{"nothing", nil, "physical", ""},
		{"qemu", map[string]string{dmi + "sys_vendor": "QEMU", dmi + "product_name": "Standard PC (Q35 + ICH9, 2009)"}, "kvm",
			""},
		{"google", map[string]string{dmi + "product_name": "Google Compute Engine"}, "gce", ""},
		{"virtualbox", map[string]string{dmi + "sys_vendor": "innotek GmbH", dmi + "product_name": "VirtualBox"},
			"VirtualBox", ""},
		{"vmware", map[string]string{dmi + "sys_vendor": "VMware, Inc.", dmi + "product_name": "VMware7,1"}, "VMware", ""},
		{"azure", map[string]string{dmi + "sys_vendor": "Microsoft Corporation", dmi + "product_name": "Virtual Machine"},
			"VirtualPC", ""},
		{"surface", map[string]string{dmi + "sys_vendor": "Microsoft Corporation", dmi + "product_name": "Surface Pro 9"},
			"physical", ""},
		{"ec2 metal", map[string]string{dmi + "sys_vendor": "Amazon EC2", dmi + "product_name": "c5.metal"}, "physical", ""},
		{"firecracker", map[string]string{clocks: "tsc kvm-clock \n"}, "kvm", ""},
		{"xen host", map[string]string{"proc/xen/capabilities": "control_d\n"}, "xen", "Xen Dom0"},
		{"xen guest", map[string]string{"proc/xen/capabilities": "\n"}, "xen", "Xen PV DomU"},
		{"lxc on kvm", map[string]string{dmi + "product_name": "KVM", "proc/1/environ": "PATH=/bin\x00container=lxc\x00"},
			"container", "LXC"},
		{"pod on kvm", map[string]string{dmi + "product_name": "KVM", "proc/1/cgroup": "1:cpu:/kubepods/pod1\n"}, "kvm",
			"kubernetes"},
		{"pod", map[string]string{"proc/1/cgroup": "1:cpu:/kubepods/pod1\n"}, "virtual", "kubernetes"},
		{"docker, cgroup v1", map[string]string{"proc/1/cgroup": "1:cpu:/docker/0123\n"}, "container", "Docker"},
		{"nspawn", map[string]string{"run/systemd/container": "systemd-nspawn\n"}, "systemd-nspawn", ""},
		{"openvz host", map[string]string{"proc/vz/version": ""}, "openvzhn", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range c.files {
				write(t, root, name, text)
			}
			got := collect(t, source(root)).Map()
			subtype, _ := got.Value("virtual_subtype").(string)
			if got.Value("virtual") != c.kind || subtype != c.subtype {
				t.Errorf("virtual %v, subtype %q; want %q, %q", got.Value("virtual"), subtype, c.kind, c.subtype)
			}
		})
	}
}

// TestPipeInPlaceOfAFileDoesNotHang checks that a pipe in place of a file does not block a run.
func TestPipeInPlaceOfAFileDoesNotHang(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(root, "etc/os-release"), 0o644); err != nil {
		t.Fatal(err)
	}
	done := make(chan *grains.Facts, 1)
	go func() { done <- collect(t, source(root)) }()
	select {
	case facts := <-done:
		if got := facts.Map().Value("os"); got != "Linux" {
			t.Errorf("os is %v", got)
		}
	case <-time.After(time.Minute):
		t.Fatal("Collect waits for a pipe")
	}
}

func FuzzReleaseFiles(f *testing.F) {
	for _, seed := range [][3]string{
		{"ID=debian\nVERSION_ID=\"12\"\n", "", ""},
		{"NAME='openSUSE Leap'\nCPE_NAME=cpe:/o:opensuse:leap:15.5", "DISTRIB_ID=\"", "release 7.9.2009 (Core)"},
		{"NAME=\nID\n=\nVERSION=(\nCPE_NAME=cpe:2.3:o:a:b:*", "DISTRIB_RELEASE=..\nDISTRIB_ID=x", "("},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, release, lsb, own string) {
		root := t.TempDir()
		write(t, root, "etc/os-release", release)
		write(t, root, "etc/lsb-release", lsb)
		write(t, root, "etc/redhat-release", own)
		got := collect(t, source(root)).Map()
		for _, name := range []string{"os", "os_family", "osfullname", "oscodename", "osrelease"} {
			if _, ok := got.Value(name).(string); !ok {
				t.Errorf("%s is %v", name, got.Value(name))
			}
		}
		if got.Value("osrelease") != "" && !got.Has("osfinger") {
			t.Error("a release without a fingerprint")
		}
	})
}

func BenchmarkCollect(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		collect(b, grains.Source{})
	}
}
