package session_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// state has the arguments of a state, and what it needs.
type state struct{ args, needs string }

// obstructed are the arguments of states that write to the path PATH, with the kind of object that they need there:
// a file, a dir(ectory), or any(thing). Those of "any" need a directory above the path.
var obstructed = map[string]state{
	"archive.extracted":       {"[{name: PATH}, {source: 'salt://a.tar.gz'}, {skip_verify: true}]", "dir"},
	"cmd.run":                 {"[{name: 'true'}, {cwd: PATH}]", "dir"},
	"cmd.script":              {"[{name: s}, {source: 'salt://s.sh'}, {cwd: PATH}]", "dir"},
	"file.absent":             {"[{name: PATH}]", "none"},
	"file.append":             {"[{name: PATH}, {text: x}, {makedirs: true}]", "file"},
	"file.blockreplace":       {"[{name: PATH}, {marker_start: a}, {marker_end: b}, {append_if_not_found: true}]", "file"},
	"file.cached":             {"[{name: PATH}]", "file"},
	"file.comment":            {"[{name: PATH}, {regex: x}]", "file"},
	"file.copy":               {"[{name: PATH}, {source: /etc/one}, {makedirs: true}]", "any"},
	"file.copy from":          {"[{name: /etc/copied}, {source: PATH}, {user: ann}]", "any"},
	"file.decode":             {"[{name: PATH}, {encoded_data: bmV3Cg==}, {encoding_type: base64}]", "file"},
	"file.directory":          {"[{name: PATH}, {makedirs: true}, {recurse: [mode]}, {dir_mode: '0750'}]", "dir"},
	"file.directory clean":    {"[{name: PATH}, {makedirs: true}, {clean: true}]", "dir"},
	"file.exists":             {"[{name: PATH}]", "any"},
	"file.hardlink":           {"[{name: PATH}, {target: /etc/one}, {makedirs: true}]", "none"},
	"file.hardlink of":        {"[{name: /etc/linked}, {target: PATH}]", "none"},
	"file.keyvalue":           {"[{name: PATH}, {key_values: {a: b}}, {append_if_not_found: true}]", "file"},
	"file.line":               {"[{name: PATH}, {content: y}, {mode: insert}, {location: end}, {create: true}]", "file"},
	"file.managed":            {"[{name: PATH}, {contents: x}, {makedirs: true}]", "file"},
	"file.managed parents":    {"[{name: PATH}, {contents: x}]", "file"},
	"file.managed backup":     {"[{name: PATH}, {contents: x}, {backup: minion}]", "file"},
	"file.missing":            {"[{name: PATH}]", "none"},
	"file.mknod":              {"[{name: PATH}, {ntype: p}]", "none"},
	"file.patch":              {"[{name: PATH}, {source: 'salt://p.patch'}]", "none"},
	"file.prepend":            {"[{name: PATH}, {text: x}, {makedirs: true}]", "file"},
	"file.pruned":             {"[{name: PATH}, {recurse: true}]", "none"},
	"file.recurse":            {"[{name: PATH}, {source: 'salt://tree'}]", "dir"},
	"file.rename":             {"[{name: PATH}, {source: /etc/one}, {makedirs: true}, {force: true}]", "any"},
	"file.replace":            {"[{name: PATH}, {pattern: x}, {repl: y}, {append_if_not_found: true}]", "file"},
	"file.retention_schedule": {"[{name: PATH}, {retain: {most_recent: 0}}]", "dir"},
	"file.serialize":          {"[{name: PATH}, {dataset: {a: b}}, {makedirs: true}]", "file"},
	"file.serialize merge":    {"[{name: PATH}, {dataset: {a: b}}, {merge_if_exists: true}, {formatter: json}]", "file"},
	"file.symlink":            {"[{name: PATH}, {target: /etc/one}, {makedirs: true}]", "none"},
	"file.tidied":             {"[{name: PATH}, {matches: ['.*']}]", "dir"},
	"file.touch":              {"[{name: PATH}, {makedirs: true}]", "any"},
	"file.uncomment":          {"[{name: PATH}, {regex: x}]", "file"},
	"git.cloned":              {"[{name: 'https://git.example.com/r'}, {target: PATH}]", "dir"},
	"git.config_set":          {"[{name: a.b}, {value: c}, {repo: PATH}]", "dir"},
	"git.config_unset":        {"[{name: a.b}, {repo: PATH}]", "none"},
	"git.detached":            {"[{name: 'https://git.example.com/r'}, {rev: v1}, {target: PATH}]", "dir"},
	"git.latest":              {"[{name: 'https://git.example.com/r'}, {target: PATH}]", "dir"},
	"git.present":             {"[{name: PATH}]", "dir"},
	"ini.options_absent":      {"[{name: PATH}, {sections: {a: [b]}}]", "file"},
	"ini.options_present":     {"[{name: PATH}, {sections: {a: {b: c}}}]", "file"},
	"ini.sections_absent":     {"[{name: PATH}, {sections: [a]}]", "file"},
	"ini.sections_present":    {"[{name: PATH}, {sections: [a]}]", "file"},
	"mount.fstab_present":     {"[{name: /dev/x}, {fs_file: /mnt}, {fs_vfstype: ext4}, {config: PATH}]", "file"},
	"mount.fstab_absent":      {"[{name: /dev/x}, {fs_file: /mnt}, {config: PATH}]", "file"},
	"mount.mounted":           {"[{name: PATH}, {device: /dev/x}, {fstype: ext4}, {mkmnt: true}]", "none"},
	"npm.bootstrap":           {"[{name: PATH}]", "dir"},
	"npm.installed":           {"[{name: left-pad}, {dir: PATH}]", "dir"},
	"npm.removed":             {"[{name: left-pad}, {dir: PATH}]", "dir"},
	"ssh_auth.present":        {"[{name: KEY}, {enc: ssh-rsa}, {user: ann}, {config: PATH}]", "file"},
	"ssh_auth.absent":         {"[{name: KEY}, {enc: ssh-rsa}, {user: ann}, {config: PATH}]", "file"},
	"ssh_auth.manage":         {"[{name: x}, {ssh_keys: [KEY]}, {enc: ssh-rsa}, {user: ann}, {config: PATH}]", "file"},
	"ssh_known_hosts.present": {"[{name: h}, {key: KEY}, {enc: ssh-rsa}, {config: PATH}]", "file"},
	"ssh_known_hosts.absent":  {"[{name: h}, {user: ann}, {config: PATH}]", "file"},
	"sysctl.present":          {"[{name: vm.swappiness}, {value: 1}, {config: PATH}]", "file"},
	"virtualenv.managed":      {"[{name: PATH}]", "dir"},
}

// placed are the objects that a user can put at a path, with the needs for which they are in the way.
var placed = map[string]struct {
	put    func(path string) error
	breaks []string
}{
	"directory": {func(p string) error { return os.MkdirAll(p+"/sub/x", 0o755) }, []string{"file"}},
	"file":      {func(p string) error { return os.WriteFile(p, []byte("x\n"), 0o644) }, []string{"dir"}},
	"huge file": {func(p string) error {
		return errors.Join(os.WriteFile(p, nil, 0o644), os.Truncate(p, 1<<40))
	}, []string{"dir"}},
	"pipe":       {func(p string) error { return unix.Mkfifo(p, 0o644) }, []string{"file", "dir"}},
	"socket":     {func(p string) error { return unix.Mknod(p, unix.S_IFSOCK|0o644, 0) }, []string{"file", "dir"}},
	"loop":       {func(p string) error { return os.Symlink(filepath.Base(p), p) }, nil},
	"file above": {func(p string) error { return put(filepath.Dir(p), "") }, []string{"file", "dir", "any"}},
	"pipe above": {func(p string) error {
		return errors.Join(os.Remove(filepath.Dir(p)), unix.Mkfifo(filepath.Dir(p), 0o644))
	}, []string{"file", "dir", "any"}},
	"nothing": {func(string) error { return nil }, nil},
}

// put makes a file in the place of an empty directory.
func put(p, text string) error {
	return errors.Join(os.Remove(p), os.WriteFile(p, []byte(text), 0o644))
}

// silent are commands that succeed and print nothing but the branches of a git repository.
type silent struct{}

func (silent) Allowed(string) error { return nil }
func (silent) Run(_ context.Context, c host.Command) (host.Output, error) {
	if slices.Contains(c.Argv, "ls-remote") {
		commit := strings.Repeat("0", 40)
		return host.Output{Stdout: commit + "\tHEAD\n" + commit + "\trefs/heads/main\n"}, nil
	}
	return host.Output{}, nil
}

// TestWhatIsInTheWayOfAState puts each object in the way of each state. A state that fails because of it names what is
// in the way, has a hint and the line of the state; in a directory that users can write to, the failure counts as the
// host's.
func TestWhatIsInTheWayOfAState(t *testing.T) {
	for kind, o := range placed {
		for _, open := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, for users %v", kind, open), func(t *testing.T) {
				t.Parallel()
				put := func(_, at string) error { return o.put(at) }
				for name, r := range runObstructed(t, obstructed, put, open) {
					breaks := slices.Contains(o.breaks, obstructed[name].needs)
					by := r.Obstruction()
					switch {
					case breaks && r.Outcome != exec.Failed:
						t.Errorf("%s did not fail: %s", name, r.Comment)
					case breaks && (by != nil) != open && !refused(r), by != nil && !open:
						t.Errorf("%s: the obstruction is %v: %s", name, by, r.Comment)
					case breaks && !refused(r) && (!strings.Contains(r.Comment, "/states/t.sls:") || r.Hint == ""):
						t.Errorf("%s: %s\nhint: %s", name, r.Comment, r.Hint)
					}
				}
			})
		}
	}
}

// refused reports whether a state failed since a user controls a path that a program would get.
func refused(r *exec.Result) bool {
	_, unsafe := host.Unsafe(r.Cause())
	return unsafe
}

// runObstructed runs all states, after put for the name and the path of each, and returns their results. The paths are
// in a directory that every user can write to, or only this one.
func runObstructed(t *testing.T, states map[string]state, put func(name, at string) error,
	open bool) map[string]*exec.Result {
	t.Helper()
	root, uid := t.TempDir(), max(os.Geteuid(), 64001)
	data := filepath.Join(root, "srv/data")
	mode := map[bool]os.FileMode{true: 0o777, false: 0o755}[open]
	if err := errors.Join(os.MkdirAll(data, 0o755), os.Chmod(data, mode)); err != nil {
		t.Fatal(err)
	}
	var sls strings.Builder
	for i, name := range slices.Sorted(maps.Keys(states)) {
		at := fmt.Sprintf("srv/data/%d", i)
		if err := errors.Join(os.Mkdir(filepath.Join(root, at), 0o755), put(name, filepath.Join(root, at, "f"))); err != nil {
			t.Fatal(err)
		}
		args := strings.NewReplacer("SUM", strings.Repeat("0", 64), "PATH2", "/"+at+"/g", "PATH", "/"+at+"/f",
			"KEY", "AAAAB3NzaC1yc2EAAAADAQABAAAAgQC7").
			Replace(states[name].args)
		fmt.Fprintf(&sls, "%s:\n  %s: %s\n", name, strings.Fields(name)[0], args)
	}
	for name, text := range map[string]string{
		"etc/passwd": fmt.Sprintf("root:x:0:0::/root:/bin/sh\nann:x:%d:%d::/srv:/bin/sh\n", uid, uid),
		"etc/group":  "root:x:0:\n", "etc/one": "one\n", "states/tree/f": "f\n", "states/s.sh": "#!/bin/sh\n",
		"states/p.patch": "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n", "states/t.sls": sls.String(),
		"states/a.tar.gz": string(packed(t)), "tmp/.keep": "", "proc/sys/vm/swappiness": "60\n",
	} {
		hosttest.Put(t, filepath.Join(root, name), text, 0o644)
	}
	for _, program := range []string{"git", "python3", "npm", "mount", "ssh-keygen", "mknod", "patch"} {
		hosttest.Put(t, filepath.Join(root, "usr/bin", program), "", 0o755)
	}
	h, err := machine.New(host.Options{Root: root, Commands: silent{}})
	if err != nil {
		t.Fatal(err)
	}
	s := families.New(session.Settings{Host: h, ID: "t", Grains: value.NewMap("id", "t", "os_family", "Debian", "kernel",
		"Linux"), States: []roots.Env{{Name: "base", Dirs: []string{"/states"}}}})
	p, err := s.Program(t.Context(), s.Named("t"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*exec.Result{}
	for _, r := range s.Run(t.Context(), p, nil).All() {
		all[r.ID()] = r
	}
	return all
}

// pathless are functions that have an argument that may be a path and are not in obstructed, with the reason.
var pathless = map[string]string{
	"alias.present":        "its target is an address",
	"cmd.wait":             "it is cmd.run after a watch",
	"cmd.watch":            "it is cmd.run after a watch",
	"cmd.wait_script":      "it is cmd.script after a watch",
	"file.accumulated":     "it writes nothing",
	"file.not_cached":      "it removes a file of the agent's cache",
	"mount.unmounted":      "its config is that of mount.fstab_absent",
	"mount.swap":           "its config is that of mount.fstab_present",
	"mysql_query.run":      "its output is written for a running server alone",
	"mysql_query.run_file": "its output is written for a running server alone",
	"pip.installed":        "the path is that of a program, which has to be root's or the user's",
	"pip.removed":          "the path is that of a program, which has to be root's or the user's",
	"pip.uptodate":         "the path is that of a program, which has to be root's or the user's",
}

// TestStatesWithPathsAreObstructed finds functions with arguments for paths that TestWhatIsInTheWayOfAState does not
// run.
func TestStatesWithPathsAreObstructed(t *testing.T) {
	known := map[string]bool{}
	for name := range obstructed {
		known[strings.Fields(name)[0]] = true
	}
	list, err := os.ReadFile("../check/functions.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		words := strings.Fields(line)
		paths := slices.ContainsFunc(words[1:], func(argument string) bool {
			return slices.Contains([]string{"target", "dir", "repo", "config", "output", "cwd", "if_missing"}, argument)
		})
		name := words[0]
		if (paths || strings.HasPrefix(name, "file.") || strings.HasPrefix(name, "archive.")) && !known[name] &&
			pathless[name] == "" {
			t.Errorf("%s may write to a path: add it to obstructed or to pathless", name)
		}
		if known[name] && pathless[name] != "" {
			t.Errorf("%s is in both lists", name)
		}
	}
}

// exchanging are commands of a user who exchanges an object while the states of a run are carried out: each moves the
// object away and puts one of another kind, or a new one of the same kind, in its place.
type exchanging struct{ root string }

func (exchanging) Allowed(string) error { return nil }
func (e exchanging) Run(_ context.Context, c host.Command) (host.Output, error) {
	kind, at, _ := strings.Cut(c.Argv[len(c.Argv)-1], " ")
	at = filepath.Join(e.root, at)
	err := os.Rename(at, at+".away")
	if kind == "directory" {
		err = errors.Join(err, os.Mkdir(at, 0o755))
	} else {
		err = errors.Join(err, os.WriteFile(at, nil, 0o644))
	}
	return host.Output{}, err
}

// TestObjectsThatAreExchangedDuringARun checks that what a user puts in the place of an object of this run counts as
// that user's.
func TestObjectsThatAreExchangedDuringARun(t *testing.T) {
	for name, states := range map[string]string{
		"another directory": "/srv/data/x:\n  file.directory: []\ndirectory /srv/data/x:\n  cmd.run: []\n" +
			"t:\n  file.managed: [{name: /srv/data/x}, {contents: x}]\n",
		"a directory for a file": "/srv/data/x:\n  file.managed: [{contents: x}]\ndirectory /srv/data/x:\n  cmd.run: []\n" +
			"t:\n  file.append: [{name: /srv/data/x}, {text: x}]\n",
		"a file for a directory": "/srv/data/x:\n  file.directory: []\nfile /srv/data/x:\n  cmd.run: []\n" +
			"t:\n  file.directory: [{name: /srv/data/x}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			data := filepath.Join(root, "srv/data")
			if err := errors.Join(os.MkdirAll(data, 0o755), os.Chmod(data, 0o777)); err != nil {
				t.Fatal(err)
			}
			hosttest.Put(t, filepath.Join(root, "states/t.sls"), states, 0o644)
			h, err := machine.New(host.Options{Root: root, Commands: exchanging{root}})
			if err != nil {
				t.Fatal(err)
			}
			all := runStates(t, h, "/states", false)
			if r := all[len(all)-1]; r.Outcome != exec.Failed || r.Obstruction() == nil {
				t.Errorf("%v, the obstruction is %v: %s", r.Outcome, r.Obstruction(), r.Comment)
			}
		})
	}
}

// TestMembersInTheWayOfAnArchive checks that what a user puts in the place of a member of an archive, and the content
// of a user's archive, count as that user's.
func TestMembersInTheWayOfAnArchive(t *testing.T) {
	for name, c := range map[string]struct {
		source string
		put    func(data string) error
	}{
		"a directory for a file": {"salt://a.tar.gz", func(d string) error { return os.MkdirAll(d+"/x/app/file", 0o755) }},
		"a file for a directory": {"salt://a.tar.gz", func(d string) error {
			return errors.Join(os.Mkdir(d+"/x", 0o755), os.WriteFile(d+"/x/app", nil, 0o644))
		}},
		"a link for a directory": {"salt://a.tar.gz", func(d string) error {
			return errors.Join(os.Mkdir(d+"/x", 0o755), os.Symlink(d, d+"/x/app"))
		}},
		"no archive": {"/srv/data/a.tar.gz", func(d string) error { return os.WriteFile(d+"/a.tar.gz", []byte("x"), 0o644) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			data := filepath.Join(root, "srv/data")
			if err := errors.Join(os.MkdirAll(data, 0o755), os.Chmod(data, 0o777), c.put(data)); err != nil {
				t.Fatal(err)
			}
			hosttest.Put(t, filepath.Join(root, "states/a.tar.gz"), string(packed(t)), 0o644)
			hosttest.Put(t, filepath.Join(root, "etc/passwd"), "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/srv:/bin/sh\n",
				0o644)
			hosttest.Put(t, filepath.Join(root, "states/t.sls"), "t:\n  archive.extracted: [{name: /srv/data/x}, {source: '"+
				c.source+"'}, {skip_verify: true}, {user: ann}]\n", 0o644)
			h, err := machine.New(host.Options{Root: root, Commands: silent{}})
			if err != nil {
				t.Fatal(err)
			}
			if r := runStates(t, h, "/states", false)[0]; r.Outcome != exec.Failed || r.Obstruction() == nil {
				t.Errorf("%v, the obstruction is %v: %s", r.Outcome, r.Obstruction(), r.Comment)
			}
		})
	}
}
