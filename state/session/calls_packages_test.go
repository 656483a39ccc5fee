package session_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// programsIn creates executable files in a root, so that a search for the programs finds them.
func programsIn(t *testing.T, root string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(root, "usr/bin", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

const dpkgDatabase = `Package: hello
Status: install ok installed
Section: devel
Installed-Size: 280
Maintainer: Someone <s@example.org>
Architecture: amd64
Version: 2.10-3
Description: example package
 It says hello.

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1
`

func TestPackagesAreDescribed(t *testing.T) {
	s, root := sessionBelow(t, map[string]string{
		"var/lib/dpkg/status": dpkgDatabase, "usr/bin/dpkg": "", "usr/bin/apt-get": "",
		"var/lib/dpkg/info/hello.list":       "/.\n/usr\n/usr/bin\n/usr/bin/hello\n",
		"var/lib/dpkg/info/libc6:amd64.list": "/.\n/usr\n/usr/lib/libc.so\n",
		"etc/apt/sources.list": "deb [arch=amd64] http://deb.example.org/debian bookworm main\n" +
			"# deb-src http://deb.example.org/debian bookworm main\n",
		"etc/apt/sources.list.d/more.sources": "Types: deb\nURIs: http://more.example.org\nSuites: stable\n" +
			"Components: main\n",
	}, nil)
	programsIn(t, root, "dpkg", "apt-get")
	runCalls(t, s, root, []functionCall{
		{name: "pkg.owner", args: []any{"/usr/bin/hello"}, want: "'hello'"},
		{name: "pkg.owner", args: []any{"/usr", "/usr/lib/libc.so", "/x"},
			want: "{'/usr': 'hello, libc6', '/usr/lib/libc.so': 'libc6', '/x': ''}"},
		{name: "pkg.owner", args: []any{"hello"}, want: "!not an absolute path"},
		{name: "pkg.file_list", args: []any{"libc6", "none"},
			want: "{'errors': ['package none is not installed'], 'files': ['/usr', '/usr/lib/libc.so']}"},
		{name: "lowpkg.file_list", args: []any{"../../../etc/passwd"}, want: "!is not the name of a package"},
		{name: "pkg.file_dict", args: []any{"hello"},
			want: "{'errors': [], 'packages': {'hello': ['/usr', '/usr/bin', '/usr/bin/hello']}}"},
		{name: "lowpkg.list_pkgs", args: []any{"hello", "gone"}, want: "{'hello': '2.10-3'}"},
		{name: "pkg.info_installed", args: []any{"hello"},
			want: "~{'hello': {'name': 'hello', 'group': 'devel', 'installed_size': '280', " +
				"'packager': 'Someone <s@example.org>', 'architecture': 'amd64', 'version': '2.10-3', 'description': 'example " +
				"package\\n It says hello.', 'install_date': '"},
		{name: "pkg.info_installed", args: []any{"gone"}, want: "!package gone is not installed"},
		{name: "pkg.info_installed", args: []any{"gone"}, kwargs: value.NewMap("failhard", false), want: "{}"},
		{name: "pkg.list_repos",
			want: "{'http://deb.example.org/debian': [{'file': '/etc/apt/sources.list', 'comps': ['main'], 'disabled': " +
				"False, 'dist': 'bookworm', 'type': 'deb', " +
				"'uri': 'http://deb.example.org/debian', 'line': 'deb [arch=amd64] http://deb.example.org/debian bookworm " +
				"main', 'architectures': ['amd64'], 'signedby': ''}, " +
				"{'file': '/etc/apt/sources.list', 'comps': ['main'], 'disabled': True, 'dist': 'bookworm', 'type': 'deb-src', " +
				"'uri': 'http://deb.example.org/debian', " +
				"'line': '# deb-src http://deb.example.org/debian bookworm main', 'architectures': [], 'signedby': ''}], " +
				"'http://more.example.org': [{'file': '/etc/apt/sources.list.d/more.sources', 'comps': ['main'], 'disabled': " +
				"False, 'dist': 'stable', 'type': 'deb', " +
				"'uri': 'http://more.example.org', 'line': 'deb http://more.example.org stable main', 'architectures': [], " +
				"'signedby': ''}]}"},
	})
}

func TestRPMPackagesAreDescribed(t *testing.T) {
	rpm := func(c host.Command) (host.Output, error) {
		switch line := strings.Join(c.Argv[1:], " "); {
		case filepath.Base(c.Argv[0]) != "rpm":
		case strings.HasPrefix(line, "-ql hello"):
			return host.Output{Stdout: "/usr/bin/hello\n/usr/share/doc/hello\n"}, nil
		case strings.HasSuffix(line, "/usr/bin/hello"):
			return host.Output{Stdout: "hello"}, nil
		case strings.HasPrefix(line, "-qf"):
			return host.Output{Stdout: "file /x is not owned by any package", Code: 1}, nil
		case strings.HasSuffix(line, " hello"):
			return host.Output{Stdout: "x86_64\ngroup\nGPL\n(none)\n3\n280\nhello.src.rpm\nIt says hello\nhttps://e.org\nv\n" +
				"2.10\n0\nlong\ntext"}, nil
		}
		return host.Output{Code: 1, Stderr: "package is not installed"}, nil
	}
	s, root := sessionBelow(t,
		map[string]string{"etc/yum.repos.d/a.repo": "[base]\nname=Base\nbaseurl=http://e.org/\nenabled=1\n",
			"etc/os-release": "ID=fedora\n", "usr/bin/dnf": "", "usr/bin/rpm": ""}, rpm)
	programsIn(t, root, "rpm", "dnf")
	runCalls(t, s, root, []functionCall{
		{name: "pkg.owner", args: []any{"/usr/bin/hello"}, want: "'hello'"},
		{name: "pkg.owner", args: []any{"/x"}, want: "''"},
		{name: "pkg.file_list", args: []any{"hello"},
			want: "{'errors': [], 'files': ['/usr/bin/hello', '/usr/share/doc/hello']}"},
		{name: "pkg.info_installed", args: []any{"hello"},
			want: "{'hello': {'arch': 'x86_64', 'group': 'group', 'license': 'GPL', 'release': '3', 'size': '280', " +
				"'source': 'hello.src.rpm', 'summary': 'It says hello', 'url': 'https://e.org', 'vendor': 'v', 'version': " +
				"'2.10', 'install_date': '1970-01-01T00:00:00Z', 'install_date_time_t': 0, 'description': 'long\\ntext'}}"},
		{name: "pkg.info_installed", args: []any{"none"}, want: "!package none is not installed"},
		{name: "pkg.list_repos",
			want: "{'base': {'name': 'Base', 'baseurl': 'http://e.org/', 'enabled': '1', 'file': '/etc/yum.repos.d/a.repo'}}"},
	})
}

func TestStatusAndUnits(t *testing.T) {
	programs := func(c host.Command) (host.Output, error) {
		line := filepath.Base(c.Argv[0]) + " " + strings.Join(c.Argv[1:], " ")
		switch {
		case line == "systemctl show -- web.service":
			return host.Output{Stdout: "Id=web.service\nAfter=a b\nExecStart={ path=/bin/web ; argv[]=/bin/web -x ; pid=0 }\n" +
				"Environment=A=b\n"}, nil
		case strings.HasPrefix(line, "df "):
			return host.Output{Stdout: "Filesystem 1024-blocks Used Available Capacity Mounted on\n" +
				"/dev/sda1 100 40 60 40% /\nproc - - - - /proc\n"}, nil
		case strings.HasPrefix(line, "w "):
			return host.Output{Stdout: "ann pts/0 10:00 1:00 0.1s 0.0s vi a b\n"}, nil
		}
		return host.Output{Code: 1, Stderr: line}, nil
	}
	me := tester()
	s, root := sessionBelow(t, map[string]string{
		"proc/1/cmdline": "/sbin/init\x00splash\x00", "proc/1/comm": "init\n", "proc/2/cmdline": "",
		"proc/2/comm":    "kthreadd\n",
		"proc/stat":      "cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1 2\nintr 9 1 0\nctxt 77\n",
		"proc/diskstats": "8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n",
		"proc/vmstat":    "nr_free_pages 5\n", "proc/net/netstat": "TcpExt: A B\nTcpExt: 1 2\nIpExt: C\nIpExt: 3\n",
		"proc/net/dev": "Inter-|\n lo: 1 2 0 0 0 0 0 0 3 4 0 0 0 0 0 0\n",
		"proc/mounts":  "/dev/sda1 / ext4 rw 0 0\nproc /proc proc rw 0 0\n",
		"proc/meminfo": "MemTotal: 8 kB\n", "etc/passwd": me.passwd, "etc/group": "root:x:0:\n",
	}, programs)
	programsIn(t, root, "systemctl", "df", "w")
	runCalls(t, s, root, []functionCall{
		{name: "service.show", args: []any{"web"},
			want: "{'Id': 'web.service', 'After': ['a', 'b'], 'ExecStart': {'path': '/bin/web', 'argv[]': '/bin/web -x', " +
				"'pid': '0'}, 'Environment': 'A=b'}"},
		{name: "service.show", args: []any{"none"}, want: "!systemctl ended with code 1"},
		{name: "status.procs",
			want: fmt.Sprintf(
				"{'1': {'user': '%[1]s', 'cmd': '/sbin/init splash'}, '2': {'user': '%[1]s', 'cmd': '[kthreadd]'}}", me.name)},
		{name: "status.pid", args: []any{"init|kthr"}, want: "'1\\n2'"},
		{name: "status.pid", args: []any{"nothing"}, want: "''"},
		{name: "status.diskusage",
			want: "{'/': {'available': 61440, 'total': 102400}, '/proc': {'available': 0, 'total': 0}}"},
		{name: "status.diskusage", args: []any{"ext*"}, want: "{'/': {'available': 61440, 'total': 102400}}"},
		{name: "status.cpustats",
			want: "{'cpu': {'user': 1, 'nice': 2, 'system': 3, 'idle': 4, 'iowait': 5, 'irq': 6, 'softirq': 7, 'steal': 8}, " +
				"'cpu0': 1, 'intr': {'total': 9, 'irqs': [1, 0]}, 'ctxt': 77}"},
		{name: "status.diskstats", want: "~{'sda': {'reads_issued': 1, 'reads_merged': 2, "},
		{name: "status.netdev", want: "~{'lo': {'iface': 'lo', 'rx_bytes': 1, 'rx_packets': 2, "},
		{name: "status.netstats", want: "{'TcpExt': {'A': 1, 'B': 2}, 'IpExt': {'C': 3}}"},
		{name: "status.w",
			want: "[{'user': 'ann', 'tty': 'pts/0', 'login': '10:00', 'idle': '1:00', 'jcpu': '0.1s', 'pcpu': '0.0s', " +
				"'what': 'vi a b'}]"},
		{name: "status.all_status", want: "~'vmstats': {'nr_free_pages': 5}"},
	})
}

func TestCopies(t *testing.T) {
	s, root := sessionBelow(t, map[string]string{"srv/salt/conf/a": "one\n", "srv/salt/conf/b/c": "two\n",
		"srv/salt/t": "{{ grains['id'] }}\n", "from/x": "x\n"}, nil)
	runCalls(t, s, root, []functionCall{
		{name: "cp.get_file", args: []any{"salt://t", "/raw"}, want: "'/raw'", file: "raw", text: "{{ grains['id'] }}\n"},
		{name: "cp.get_file", args: []any{"salt://none", "/none"}, want: "!salt://none"},
		{name: "cp.get_template", args: []any{"salt://t", "/made"}, want: "'/made'", file: "made", text: "web1\n"},
		{name: "cp.cache_dir", args: []any{"salt://conf"}, want: "['/srv/salt/conf/a', '/srv/salt/conf/b/c']"},
		{name: "cp.get_dir", args: []any{"salt://conf", "/etc"}, want: "['/etc/conf/a', '/etc/conf/b/c']",
			file: "etc/conf/b/c", text: "two\n"},
		{name: "cp.get_dir", args: []any{"salt://conf/", "/all"}, want: "['/all/a', '/all/b/c']", file: "all/b/c",
			text: "two\n"},
		{name: "cp.get_dir", args: []any{"salt://none", "/all"}, want: "!there is no directory salt://none"},
		{name: "file.copy", args: []any{"/from/x", "/y"}, want: "True", file: "y", text: "x\n"},
		{name: "file.copy", args: []any{"/made", "/y"}, want: "True", file: "y", text: "web1\n"},
		{name: "file.copy", args: []any{"/from", "/to"}, want: "!set recurse=True"},
		{name: "file.copy", args: []any{"/from", "/to"}, kwargs: value.NewMap("recurse", true), want: "True", file: "to/x",
			text: "x\n"},
		{name: "file.copy", args: []any{"/from", "/to"}, kwargs: value.NewMap("recurse", true, "remove_existing", true),
			want: "True", file: "to/x", text: "x\n"},
		{name: "file.copy", args: []any{"/nothing", "/to"}, want: "!/nothing"},
		{name: "git.clone", args: []any{"/src/app", "https://e.org/app.git"}, kwargs: value.NewMap("opts", "--depth 1"),
			want: "!no option --depth"},
		{name: "git.clone", args: []any{"/src/app"}, want: "!requires the argument url"},
		{name: "sysctl.assign", args: []any{"no.such", 1}, want: "!there is no kernel setting no.such"},
	})
}
