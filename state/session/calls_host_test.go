package session_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// twoArchives returns a tar.gz and a zip archive of the same two files.
func twoArchives(t *testing.T) (tarball, zipped string) {
	t.Helper()
	var a, b bytes.Buffer
	gz := gzip.NewWriter(&a)
	tw, zw := tar.NewWriter(gz), zip.NewWriter(&b)
	for _, name := range []string{"app/one", "two"} {
		if err := tw.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(name))}); err != nil {
			t.Fatal(err)
		}
		w, err := zw.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = tw.Write([]byte(name))
		_, _ = w.Write([]byte(name))
	}
	for _, c := range []interface{ Close() error }{tw, gz, zw} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return a.String(), b.String()
}

func TestArchivesAreUnpacked(t *testing.T) {
	tarball, zipped := twoArchives(t)
	s, root := sessionBelow(t, map[string]string{"a.tar.gz": tarball, "a.zip": zipped, "srv/salt/a.tar.gz": tarball,
		"log": "line\n", "bad.tar": "none"}, nil)
	runCalls(t, s, root, []functionCall{
		{name: "archive.list", args: []any{"/a.tar.gz"}, want: "['app/one', 'two']"},
		{name: "archive.list", args: []any{"salt://a.tar.gz"}, want: "['app/one', 'two']"},
		{name: "archive.list", args: []any{"/a.zip"}, kwargs: value.NewMap("strip_components", 1), want: "['one']"},
		{name: "archive.list", args: []any{"/a.zip"}, kwargs: value.NewMap("verbose", true),
			want: "~'files': ['app/one', 'two'], 'links': [], 'top_level_dirs': [], 'top_level_files': ['two']"},
		{name: "archive.list", args: []any{"/none.tar"}, want: "!does not exist"},
		{name: "archive.list", args: []any{"/bad.tar"}, want: "!is not a complete tar archive"},
		{name: "archive.tar", args: []any{"tzf", "/a.tar.gz"}, want: "['app/one', 'two']"},
		{name: "archive.tar", args: []any{"xzf", "/a.tar.gz"}, kwargs: value.NewMap("dest", "/t"), want: "['app/one', 'two']",
			file: "t/app/one", text: "app/one"},
		{name: "archive.tar", args: []any{"czf", "/new.tar.gz"}, kwargs: value.NewMap("sources", "/t"), want: "[]"},
		{name: "archive.tar", args: []any{"tf", "/new.tar.gz"}, want: "['t/', 't/app/', 't/app/one', 't/two']"},
		{name: "archive.tar", args: []any{"-cjvf", "/new.tar.bz2", "app/*,two"}, kwargs: value.NewMap("cwd", "/t"),
			want: "['app/one', 'two']"},
		{name: "archive.tar", args: []any{"xf", "/new.tar.bz2"}, kwargs: value.NewMap("dest", "/u"),
			want: "['app/one', 'two']", file: "u/app/one", text: "app/one"},
		{name: "archive.tar", args: []any{"cJf", "/new.tar.xz", "/t/two"}, want: "[]"},
		{name: "archive.list", args: []any{"/new.tar.xz"}, want: "['t/two']"},
		{name: "archive.tar", args: []any{"czf", "/new.tar.gz", "/none"}, want: "!none"},
		{name: "archive.tar", args: []any{"tf", "/new.tar.gz"}, want: "['t/', 't/app/', 't/app/one', 't/two']"}, // as it was
		{name: "archive.tar", args: []any{"rf", "/new.tar", "/t"}, want: "!makes, extracts and lists archives here"},
		{name: "archive.zip", args: []any{"/new.zip", "/t"}, want: "['t/', 't/app/', 't/app/one', 't/two']"},
		{name: "archive.zip", args: []any{"/short.zip", "one"}, kwargs: value.NewMap("cwd", "/t/app"), want: "['one']"},
		{name: "archive.unzip", args: []any{"/short.zip", "/v"}, want: "['one']", file: "v/one", text: "app/one"},
		{name: "archive.is_encrypted", args: []any{"/new.zip"}, want: "False"},
		{name: "archive.unzip", args: []any{"/a.zip", "/z"}, kwargs: value.NewMap("excludes", "two"),
			want: "['app/one', 'two']", file: "z/two"},
		{name: "archive.unzip", args: []any{"/a.zip", "/z"}, want: "['app/one', 'two']", file: "z/two", text: "two"},
		{name: "archive.gzip", args: []any{"/log"}, want: "[]", file: "log"},
		{name: "archive.gunzip", args: []any{"/log.gz"}, want: "[]", file: "log", text: "line\n"},
		{name: "archive.gunzip", args: []any{"/log"}, want: "!does not end with .gz"},
	})
}

func TestDataStoreIsPersistent(t *testing.T) {
	s, root := sessionBelow(t, nil, nil)
	const file = "var/cache/corpus/datastore.json"
	runCalls(t, s, root, []functionCall{
		{name: "data.load", want: "{}"},
		{name: "data.update", args: []any{"a", 1}, want: "True", file: file, text: "{\"a\": 1}\n"},
		{name: "data.get", args: []any{"a"}, want: "1"},
		{name: "data.getval", args: []any{"b", "none"}, want: "'none'"},
		{name: "data.cas", args: []any{"a", 2, 5}, want: "False"},
		{name: "data.cas", args: []any{"a", 2, 1}, want: "True"},
		{name: "data.keys", want: "['a']"},
		{name: "data.values", want: "[2]"},
		{name: "data.has_key", args: []any{"b"}, want: "False"},
		{name: "data.getvals", args: []any{"a", "b"}, want: "[2]"},
		{name: "data.pop", args: []any{"a"}, want: "2", file: file, text: "{}\n"},
		{name: "data.dump", args: []any{value.NewMap("x", value.NewList(1))}, want: "True"},
		{name: "data.items", want: "{'x': [1]}"},
		{name: "data.clear", want: "True", file: file, text: "{}\n"},
	})
	if info, err := os.Stat(filepath.Join(root, file)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the data store is %v, %v; want mode 0600", info, err)
	}
	if err := os.WriteFile(filepath.Join(root, file), []byte("["), 0o600); err != nil {
		t.Fatal(err)
	}
	runCalls(t, s, root,
		[]functionCall{{name: "data.update", args: []any{"a", 1}, want: "!is not a mapping in JSON", file: file, text: "["}})
}

func TestNetworkSystemAndLists(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	ran, me := "", tester()
	programs := func(c host.Command) (host.Output, error) {
		switch line := filepath.Base(c.Argv[0]) + " " + strings.Join(c.Argv[1:], " "); {
		case strings.HasPrefix(line, "ping") && strings.HasSuffix(line, "db1"):
			return host.Output{Stdout: "4 received"}, nil
		case strings.HasPrefix(line, "pip3 list"):
			return host.Output{Stdout: "Jinja2==3.1\nPyYAML==6.0\n"}, nil
		case strings.HasPrefix(line, "docker ps"):
			return host.Output{
				Stdout: `{"ID":"ab","Names":"web","Image":"nginx","Command":"\"run\"","Status":"Up","State":"running"}` + "\n"}, nil
		case strings.HasPrefix(line, "lsattr"):
			return host.Output{Stdout: "----i---e-- /f\n"}, nil
		case strings.HasPrefix(line, "shutdown"):
			ran = line
			return host.Output{}, nil
		}
		return host.Output{Code: 1}, nil
	}
	s, root := sessionBelow(t, map[string]string{
		"proc/net/tcp": "sl local\n 0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 99 1\n" +
			" 1: 0100007F:1F90 0200007F:0050 01 00000001:00000002 00:00000000 00000000 0 0 98 1\n",
		"proc/net/arp":   "IP address HW type Flags HW address Mask Device\n10.0.0.2 0x1 0x2 02:00:00:00:00:01 * eth0\n",
		"proc/7/stat":    "7 (a (b) c) R 1 7 7 0 -1 0 0 0 0 0 100 50 0 0 20 0 1 0 5 4096 2 0\n",
		"proc/7/cmdline": "abc\x00-x\x00", "etc/passwd": me.passwd, "etc/group": "root:x:0:\n",
		"etc/machine-info": "PRETTY_HOSTNAME=\"Web one\"\n",
	}, programs)
	programsIn(t, root, "ping", "pip3", "docker", "lsattr", "shutdown")
	runCalls(t, s, root, []functionCall{
		{name: "network.ping", args: []any{"db1"}, want: "'4 received'"},
		{name: "network.ping", args: []any{"db2"}, kwargs: value.NewMap("return_boolean", true), want: "False"},
		{name: "network.ping", args: []any{"-f"}, want: "!is not a host"},
		{name: "network.connect", args: []any{"127.0.0.1", port},
			want: "{'result': True, 'comment': 'Successfully connected to 127.0.0.1 (127.0.0.1) on tcp port " +
				strconv.Itoa(port) + "'}"},
		{name: "network.connect", args: []any{"127.0.0.1"}, want: "~'result': False"},
		{name: "network.netstat",
			want: "[{'proto': 'tcp', 'recv-q': '0', 'send-q': '0', 'local-address': '127.0.0.1:8080', 'remote-address': " +
				"'0.0.0.0:0', 'inode': '99', 'state': 'LISTEN', 'user': 'root'}, " +
				"{'proto': 'tcp', 'recv-q': '2', 'send-q': '1', 'local-address': '127.0.0.1:8080', 'remote-address': " +
				"'127.0.0.2:80', 'inode': '98', 'state': 'ESTABLISHED', 'user': 'root'}]"},
		{name: "network.active_tcp",
			want: "{0: {'local_addr': '127.0.0.1', 'local_port': '8080', 'remote_addr': '127.0.0.2', 'remote_port': '80'}}"},
		{name: "network.arp", want: "{'02:00:00:00:00:01': '10.0.0.2'}"},
		{name: "ps.top", args: []any{1, 0}, want: "[{'pid': 7, 'cmd': 'abc -x', 'user': '" + me.name +
			"', 'status': 'running', 'cpu': {'user': 1.0, 'system': 0.5}, 'mem': {'rss': 8192, 'vms': 4096}}]"},
		{name: "pip.list", args: []any{"py"}, want: "{'PyYAML': '6.0'}"},
		{name: "pip.freeze", want: "['Jinja2==3.1', 'PyYAML==6.0']"},
		{name: "docker.ps", want: "~{'ab': {'Id': 'ab', 'Names': ['web'], 'Image': 'nginx', 'Command': 'run'"},
		{name: "file.lsattr", args: []any{"/f"}, want: "{'/f': ['i', 'e']}"},
		{name: "system.get_computer_desc", want: "'Web one'"},
		{name: "system.get_system_date", want: "~/20"},
		{name: "system.reboot", args: []any{"soon"}, want: "!at_time is"},
		{name: "system.reboot", args: []any{5}, want: "''"},
	})
	if ran != "shutdown -r +5" {
		t.Errorf("system.reboot ran %q", ran)
	}
}

// TestUnchrootableRootDoesNotActOnMachine calls functions that act on the running system, below a root that is not a
// system.
func TestUnchrootableRootDoesNotActOnMachine(t *testing.T) {
	s, root := sessionBelow(t, nil, nil)
	for _, name := range []string{"system.reboot", "system.halt", "system.set_reboot_required_witnessed"} {
		runCalls(t, s, root, []functionCall{{name: name, want: "!would act on the running system"}})
	}
}

// TestFunctionsThroughMissingPrograms checks that functions exist only if their program is installed, as with Salt's
// __virtual__.
func TestFunctionsThroughMissingPrograms(t *testing.T) {
	t.Setenv("PATH", "/usr/bin")
	psql := func(host.Command) (host.Output, error) { return host.Output{Stdout: "datname\napp\n"}, nil }
	s, root := sessionBelow(t, map[string]string{"etc/passwd": passwd}, psql)
	expect := func(want string) {
		t.Helper()
		text := "{{ 'postgres.db_exists' in salt }} {{ salt.postgres is defined }} {{ salt.get('mysql.db_list', 'no " +
			"mysql') }} {{ 'git.revision' in salt }}"
		runCalls(t, s, root,
			[]functionCall{{name: "slsutil.renderer", kwargs: value.NewMap("string", text, "default_renderer", "jinja"),
				want: want}})
	}
	expect("'False False no mysql False'")
	for name, program := range map[string]string{"postgres.db_exists": "psql", "mysql.db_list": "mysql",
		"docker.ps": "docker", "git.version": "git"} {
		runCalls(t, s, root, []functionCall{
			{name: name, args: []any{"app"}, want: "!there is no function " + name +
				" on this host: __virtual__ is False, since the program " + program + " is not installed"},
			{name: "sys.list_functions", args: []any{name}, want: "[]"},
		})
	}
	programsIn(t, root, "psql")
	expect("'True True no mysql False'")
	runCalls(t, s, root,
		[]functionCall{{name: "postgres.db_exists", args: []any{"app"}, kwargs: value.NewMap("host", "db.example"),
			want: "True"}})
}
