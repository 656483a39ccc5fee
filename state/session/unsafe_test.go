package session_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

const ann = 64001

// annsHost returns a root in which ann has a home with links to root's files, as an attacker would create them.
func annsHost(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("files of several users require root")
	}
	root := t.TempDir()
	for name, text := range map[string]string{
		"etc/passwd": "root:x:0:0::/root:/bin/sh\nann:x:64001:64001::/home/ann:/bin/sh\n",
		"etc/group":  "root:x:0:\nann:x:64001:ann\n",
		"etc/shadow": "root:*:1::::::\nann:*:1::::::\n", "etc/secret": "root's = secret\n", "etc/cron.d/old": "x\n",
		"etc/dir/f": "f\n", "etc/dir/sub/g": "g\n", "srv/own": "own\n", "etc/x.ini": "[a]\nb = 1\n",
		"home/ann/file": "ann's\n", "home/ann/own/x": "x\n", "home/ann/sub/x": "x\n",
	} {
		hosttest.Put(t, filepath.Join(root, name), text, 0o644)
	}
	hosttest.Put(t, filepath.Join(root, "etc/key"), "private\n", 0o600)
	for name, target := range map[string]string{
		"link": "/etc/secret", "dots": "../../etc/secret", "dangling": "/etc/cron.d/evil", "dir": "/etc/cron.d",
		"d": "/etc/dir", ".ssh": "/etc/dir", "ini": "/etc/x.ini",
		"mine": "own/x", "mydir": "own",
	} {
		if err := os.Symlink(target, filepath.Join(root, "home/ann", name)); err != nil {
			t.Fatal(err)
		}
	}
	own(t, filepath.Join(root, "home/ann"))
	if err := errors.Join(os.Link(filepath.Join(root, "etc/key"), filepath.Join(root, "home/ann/hard")),
		unix.Mkfifo(filepath.Join(root, "home/ann/pipe"), 0o644),
		os.Lchown(filepath.Join(root, "home/ann/pipe"), ann, ann)); err != nil {
		t.Fatal(err)
	}
	return root
}

func own(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(p, ann, ann))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// runOn runs an SLS file on a root and returns the results.
func runOn(t *testing.T, root, sls string, dry bool) []*exec.Result {
	t.Helper()
	hosttest.Put(t, filepath.Join(root, "states/t.sls"), sls, 0o644)
	h, err := machine.New(host.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	s := families.New(session.Settings{Host: h, ID: "t", Grains: value.NewMap("id", "t", "os_family", "Debian", "kernel",
		"Linux"), Test: dry,
		States: []roots.Env{{Name: "base", Dirs: []string{"/states"}}}})
	p, err := s.Program(t.Context(), s.Named("t"))
	if err != nil {
		t.Fatal(err)
	}
	return s.Run(t.Context(), p, nil).All()
}

// outside describes the files of a root, by path, except those of ann and of the states.
func outside(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		name := strings.TrimPrefix(p, root)
		for _, other := range []string{"/home", "/states", "/var"} {
			if err != nil || strings.HasPrefix(name, other) {
				return err
			}
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return err
		}
		data := []byte{}
		if d.Type().IsRegular() {
			data, err = os.ReadFile(p)
		}
		all[name] = fmt.Sprintf("%o %d:%d %s", st.Mode, st.Uid, st.Gid, data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// attacked has states with a path through a link or a hard link that ann controls. States that change nothing even
// without a refusal are marked harmless.
var attacked = map[string]struct {
	sls      string
	harmless bool
	never    bool // the state fails with follow_unsafe, too
}{
	"managed":               {sls: "file.managed: [{name: /home/ann/link}, {contents: x}]"},
	"managed by dots":       {sls: "file.managed: [{name: /home/ann/dots}, {contents: x}]"},
	"managed dangling":      {sls: "file.managed: [{name: /home/ann/dangling}, {contents: x}, {user: ann}]"},
	"managed in a link":     {sls: "file.managed: [{name: /home/ann/dir/evil}, {contents: x}]"},
	"managed makedirs":      {sls: "file.managed: [{name: /home/ann/dir/sub/evil}, {contents: x}, {makedirs: true}]"},
	"managed mode":          {sls: "file.managed: [{name: /home/ann/link}, {mode: '0666'}, {replace: false}]"},
	"managed hard":          {sls: "file.managed: [{name: /home/ann/hard}, {user: ann}, {replace: false}]"},
	"managed hard contents": {sls: "file.managed: [{name: /home/ann/hard}, {contents: x}, {user: ann}]"},
	"managed source":        {sls: "file.managed: [{name: /srv/new}, {source: /home/ann/link}]"},
	"managed source hard":   {sls: "file.managed: [{name: /srv/new}, {source: /home/ann/hard}]"},
	"directory":             {sls: "file.directory: [{name: /home/ann/dir}, {user: ann}]"},
	"directory below":       {sls: "file.directory: [{name: /home/ann/dir/new}, {user: ann}]"},
	"directory recurse":     {sls: "file.directory: [{name: /home/ann/d}, {user: ann}, {recurse: [user, group, mode]}]"},
	"directory clean":       {sls: "file.directory: [{name: /home/ann/d}, {clean: true}]"},
	"directory hard":        {sls: "file.directory: [{name: /home/ann}, {user: ann}, {recurse: [user]}]"},
	"recurse":               {sls: "file.recurse: [{name: /home/ann/dir}, {source: 'salt://tree'}]"},
	"copy":                  {sls: "file.copy: [{name: /srv/new}, {source: /home/ann/link}]"},
	"copy into":             {sls: "file.copy: [{name: /home/ann/dir/evil}, {source: /srv/own}]"},
	"copy tree":             {sls: "file.copy: [{name: /srv/tree}, {source: /home/ann/d}]"},
	"append":                {sls: "file.append: [{name: /home/ann/link}, {text: x}]"},
	"append source":         {sls: "file.append: [{name: /srv/own}, {source: /home/ann/link}, {template: ''}]"},
	"prepend":               {sls: "file.prepend: [{name: /home/ann/link}, {text: x}]"},
	"line":                  {sls: "file.line: [{name: /home/ann/link}, {content: x}, {mode: ensure}, {after: root}]"},
	"replace":               {sls: "file.replace: [{name: /home/ann/link}, {pattern: secret}, {repl: x}]"},
	"comment":               {sls: "file.comment: [{name: /home/ann/link}, {regex: ^root}]"},
	"blockreplace": {sls: "file.blockreplace: [{name: /home/ann/link}, {marker_start: a}, {marker_end: b}, " +
		"{content: x}, {append_if_not_found: true}]"},
	"keyvalue": {sls: "file.keyvalue: [{name: /home/ann/link}, {key: a}, {value: b}, {separator: '='}, " +
		"{append_if_not_found: true}]"},
	"serialize":          {sls: "file.serialize: [{name: /home/ann/link}, {dataset: {a: b}}]"},
	"touch":              {sls: "file.touch: [{name: /home/ann/dir/evil}]"},
	"touch dangling":     {sls: "file.touch: [{name: /home/ann/dangling}]"},
	"absent":             {sls: "file.absent: [{name: /home/ann/dir/old}]"},
	"absent of the link": {sls: "file.absent: [{name: /home/ann/link}]", harmless: true},
	"rename from":        {sls: "file.rename: [{name: /srv/new}, {source: /home/ann/dir/old}]"},
	"rename into":        {sls: "file.rename: [{name: /home/ann/dir/evil}, {source: /srv/own}]"},
	"symlink":            {sls: "file.symlink: [{name: /home/ann/dir/evil}, {target: /srv/own}]"},
	"hardlink":           {sls: "file.hardlink: [{name: /home/ann/dir/evil}, {target: /srv/own}]"},
	"hardlink of hard":   {sls: "file.hardlink: [{name: /srv/new}, {target: /home/ann/hard}]"},
	"tidied":             {sls: "file.tidied: [{name: /home/ann/d/sub}, {matches: ['.*']}]"},
	"retention":          {sls: "file.retention_schedule: [{name: /home/ann/d/sub}, {retain: {most_recent: 0}}]"},
	"ini":                {sls: "ini.options_present: [{name: /home/ann/ini}, {sections: {a: {b: '2'}}}]"},
	"ssh_auth": {sls: "ssh_auth.present: [{name: AAAAB3NzaC1yc2EAAAADAQABAAAAgQC7}, {user: ann}, {enc: " +
		"ssh-rsa}]", never: true},
	"ssh_known_hosts": {sls: "ssh_known_hosts.present: [{name: h}, {user: ann}, {key: " +
		"AAAAB3NzaC1yc2EAAAADAQABAAAAgQC7}, {enc: ssh-rsa}, {hash_known_hosts: false}]", never: true},
}

// TestStatesRefuseForeignLinks makes a dry run and a run of each state with the links of an unprivileged user, and then
// a run with follow_unsafe.
func TestStatesRefuseForeignLinks(t *testing.T) {
	for name, c := range attacked {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := annsHost(t)
			hosttest.Put(t, filepath.Join(root, "states/tree/evil"), "evil", 0o644)
			before := outside(t, root)
			for _, dry := range []bool{true, false} {
				r := runOn(t, root, "t: {"+c.sls+"}", dry)[0]
				_, unsafe := host.Unsafe(r.Cause())
				if unsafe == c.harmless || unsafe && (r.Outcome != exec.Failed ||
					!strings.Contains(r.Hint, "follow_unsafe: true") || !strings.Contains(r.Comment, "/home/ann") ||
					!strings.Contains(r.Comment, "controlled by user ann")) {
					t.Errorf("dry %v: refused %v: %v: %s\nhint: %s", dry, unsafe, r.Outcome, r.Comment, r.Hint)
				}
				if after := outside(t, root); !maps.Equal(before, after) {
					t.Errorf("dry %v: outside of ann's files there was\n%v\nand now\n%v", dry, before, after)
				}
			}
			if c.harmless {
				return
			}
			r := runOn(t, root, "t: {"+strings.TrimSuffix(c.sls, "]")+", {follow_unsafe: true}]}", false)[0]
			var unsafe *walk.UnsafeError
			if errors.As(r.Cause(), &unsafe) || !strings.Contains(strings.Join(r.Warnings, "\n"), "follow_unsafe") ||
				strings.Contains(strings.Join(r.Warnings, "\n"), "no argument") {
				t.Errorf("with follow_unsafe: %v: %s, warnings %q", r.Outcome, r.Comment, r.Warnings)
			}
			if r.Outcome != exec.Succeeded && !c.never {
				t.Errorf("with follow_unsafe: %v: %s", r.Outcome, r.Comment)
			}
		})
	}
}

// TestStatesFollowLinksToOwnFiles checks that a user's links to files of the same user are followed.
func TestStatesFollowLinksToOwnFiles(t *testing.T) {
	root := annsHost(t)
	for _, sls := range []string{
		"file.managed: [{name: /home/ann/mine}, {contents: new}]", "file.append: [{name: /home/ann/mine}, {text: more}]",
		"file.managed: [{name: /home/ann/mydir/y}, {contents: y}, {user: ann}]",
		"file.directory: [{name: /home/ann/mydir}, {user: ann}, {recurse: [user]}]",
		"file.copy: [{name: /home/ann/new}, {source: /home/ann/mine}]", "file.exists: [{name: /home/ann/link}]",
		"file.managed: [{name: /home/ann/file}, {contents: new}]",
	} {
		if r := runOn(t, root, "t: {"+sls+"}", false)[0]; r.Outcome != exec.Succeeded {
			t.Errorf("%s: %s", sls, r.Comment)
		}
	}
	data, err := os.ReadFile(filepath.Join(root, "home/ann/own/x"))
	if err != nil || string(data) != "new\nmore\n" {
		t.Errorf("%q, %v", data, err)
	}
}

// states returns an SLS file with one state, or with several if sls begins with a brace.
func states(sls string) string {
	if strings.HasPrefix(sls, "{") {
		return "t: " + sls
	}
	return "t: {" + sls + "}"
}

// TestStatesThatFollowNoLinkAreNotRefused checks states that change the owner of links, remove or compare them. They do
// not follow a user's links, also dangling ones, and so they do not fail. The second run changes nothing.
func TestStatesThatFollowNoLinkAreNotRefused(t *testing.T) {
	for name, sls := range map[string]string{
		"recurse": "file.directory: [{name: /home/ann}, {user: ann}, {group: ann}, {recurse: [user, group]}]",
		"recurse mode": "file.directory: [{name: /home/ann}, {user: ann}, {group: ann}, {recurse: [user, group, " +
			"mode]}, {file_mode: '0640'}, {dir_mode: '0750'}]",
		"recurse dirs":  "file.directory: [{name: /home/ann}, {user: ann}, {recurse: [user, ignore_files]}]",
		"recurse files": "file.directory: [{name: /home/ann}, {user: ann}, {recurse: [user, ignore_dirs]}]",
		"recurse followed": "file.directory: [{name: /home/ann}, {user: ann}, {group: ann}, {recurse: [user, group, " +
			"mode]}, {dir_mode: '0750'}, {follow_symlinks: true}]",
		"clean": "file.directory: [{name: /home/ann}, {clean: true}]",
		"clean keeps": "{file.symlink: [{name: /home/ann/link}, {target: /etc/secret}, {user: ann}]}\n" +
			"u: {file.directory: [{name: /home/ann}, {clean: true}, {require: [{file: t}]}]}",
		"clean keeps a dir": "{file.symlink: [{name: /home/ann/d}, {target: /etc/dir}, {user: ann}]}\n" +
			"u: {file.directory: [{name: /home/ann}, {clean: true}, {require: [{file: t}]}]}",
		"tidied":              "file.tidied: [{name: /home/ann}, {matches: ['.*']}, {age: 0}]",
		"tidied directories":  "file.tidied: [{name: /home/ann}, {matches: ['.*']}, {age: 0}, {rmdirs: true}]",
		"tidied no links":     "file.tidied: [{name: /home/ann}, {matches: ['.*']}, {age: 0}, {rmlinks: false}]",
		"tidied followed":     "file.tidied: [{name: /home/ann}, {matches: ['.*']}, {age: 0}, {followlinks: true}]",
		"absent":              "file.absent: [{name: /home/ann/d}]",
		"absent dangling":     "file.absent: [{name: /home/ann/dangling}]",
		"absent tree":         "file.absent: [{name: /home/ann}]",
		"symlink":             "file.symlink: [{name: /home/ann/d}, {target: /srv/own}, {user: ann}]",
		"symlink of the same": "file.symlink: [{name: /home/ann/link}, {target: /etc/secret}, {user: ann}]",
		"rename onto":         "file.rename: [{name: /home/ann/d}, {source: /home/ann/file}, {force: true}]",
		"rename of":           "file.rename: [{name: /home/ann/new}, {source: /home/ann/dangling}]",
		"directory forced":    "file.directory: [{name: /home/ann/d}, {force: true}]",
		"directory for file":  "file.directory: [{name: /home/ann/dangling}, {force: true}]",
		"retention":           "file.retention_schedule: [{name: /home/ann}, {retain: {most_recent: 0}}]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := annsHost(t)
			for _, gone := range []string{"hard", "pipe"} {
				if err := os.Remove(filepath.Join(root, "home/ann", gone)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink("/etc/dir", filepath.Join(root, "home/ann/roots")); err != nil {
				t.Fatal(err)
			}
			before := outside(t, root)
			for _, dry := range []bool{true, false, false} {
				for _, r := range runOn(t, root, states(sls), dry) {
					if r.Outcome == exec.Failed && !(strings.HasPrefix(name, "rename") &&
						strings.Contains(r.Comment, "does not exist")) {
						t.Errorf("dry %v: %s\n%s", dry, r.Comment, r.Hint)
					}
				}
			}
			for _, r := range runOn(t, root, states(sls), true) {
				if r.Changes.Len() > 0 && name != "retention" {
					t.Errorf("another run would change %s", value.Repr(r.Changes))
				}
			}
			if after := outside(t, root); !maps.Equal(before, after) {
				t.Errorf("outside of ann's files there was\n%v\nand now\n%v", before, after)
			}
		})
	}
}

// TestGroupsOfTheHost checks links of root in a directory that a group may write to. They are refused whether or not
// the group has members, and the error has the path once. Below /usr/local, to which Debian's group staff may write,
// they are followed while the group has no members.
func TestGroupsOfTheHost(t *testing.T) {
	for name, c := range map[string]struct{ passwd, group, nsswitch, at, by string }{
		"no members": {"", "staff:x:50:\n", "passwd: files systemd\ngroup: files [SUCCESS=merge] systemd\n",
			"usr/local", ""},
		"root is a member": {"", "staff:x:50:root,gone\n", "", "usr/local", ""},
		"elsewhere":        {"", "staff:x:50:root\n", "", "srv/local", "group staff"},
		"listed":           {"", "staff:x:50:ann\n", "", "usr/local", "group staff"},
		"own group":        {"bob:x:64002:50::/:/bin/sh\n", "staff:x:50:\n", "", "usr/local", "group staff"},
		"another source":   {"", "staff:x:50:\n", "passwd: files sss\ngroup: files sss\n", "usr/local", "group staff"},
	} {
		t.Run(name, func(t *testing.T) {
			root := annsHost(t)
			for file, more := range map[string]string{"etc/passwd": c.passwd, "etc/group": c.group,
				"etc/nsswitch.conf": c.nsswitch} {
				old, err := os.ReadFile(filepath.Join(root, file))
				if err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
				hosttest.Put(t, filepath.Join(root, file), string(old)+more, 0o644)
			}
			local := filepath.Join(root, c.at)
			if err := errors.Join(os.MkdirAll(local, 0o755), os.Lchown(local, 0, 50), os.Chmod(local, 0o775|os.ModeSetgid),
				os.Symlink("/etc/dir", filepath.Join(local, "app"))); err != nil {
				t.Fatal(err)
			}
			r := runOn(t, root, "t: {file.managed: [{name: /"+c.at+"/app/new}, {contents: x}]}", false)[0]
			if _, unsafe := host.Unsafe(r.Cause()); unsafe != (c.by != "") ||
				unsafe != strings.Contains(r.Comment, "controlled by "+c.by+" ") || !unsafe && r.Outcome != exec.Succeeded {
				t.Errorf("refused %v: %s", unsafe, r.Comment)
			}
			if c.by != "" && strings.Count(r.Comment, "/"+c.at+"/app/new") != 1 {
				t.Errorf("the error does not have the path once: %s", r.Comment)
			}
		})
	}
}

// TestKeysOfAUserAreNotUsed checks that keys in a directory that a user controls are refused: the configuration of gpg
// is in the same directory, and can name programs.
func TestKeysOfAUserAreNotUsed(t *testing.T) {
	root := annsHost(t)
	hosttest.Put(t, filepath.Join(root, "home/ann/own/gpg.conf"), "agent-program /home/ann/evil\n", 0o600)
	hosttest.Put(t, filepath.Join(root, "home/ann/own/age.key"), "AGE-SECRET-KEY-1\n", 0o600)
	own(t, filepath.Join(root, "home/ann"))
	h, err := machine.New(host.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	for renderer, c := range map[string]struct{ option, at, text string }{
		"gpg": {"gpg_keydir", "/home/ann/own", "-----BEGIN PGP MESSAGE-----\n\nx\n-----END PGP MESSAGE-----"},
		"age": {"age_keyfile", "/home/ann/own/age.key",
			"-----BEGIN AGE ENCRYPTED FILE-----\nx\n-----END AGE ENCRYPTED FILE-----"},
	} {
		hosttest.Put(t, filepath.Join(root, "pillar/top.sls"), "base: {'*': [p]}\n", 0o644)
		hosttest.Put(t, filepath.Join(root, "pillar/p.sls"), "#!yaml|"+renderer+"\na: |\n  "+
			strings.ReplaceAll(c.text, "\n", "\n  ")+"\n", 0o644)
		s := families.New(session.Settings{Host: h, ID: "t", Grains: value.NewMap("id", "t"),
			Options: value.NewMap(c.option, c.at),
			Pillar:  []roots.Env{{Name: "base", Dirs: []string{"/pillar"}}}})
		if _, err := s.Pillar(t.Context()); err == nil || !strings.Contains(err.Error(),
			"the keys in "+c.at+" are not used, since user 64001 can change /home/ann") {
			t.Errorf("%s: %v", renderer, err)
		}
	}
}

// TestDecodeReplacesAHugeFile checks that a user's sparse file of 100 GB is replaced without computing its checksum.
func TestDecodeReplacesAHugeFile(t *testing.T) {
	root := annsHost(t)
	file := filepath.Join(root, "home/ann/file")
	if err := os.Truncate(file, 100<<30); err != nil {
		t.Fatal(err)
	}
	sls := "/home/ann/file:\n  file.decode:\n    - encoded_data: bmV3Cg==\n    - encoding_type: base64\n" +
		"    - checksum: sha256\n"
	for _, r := range runOn(t, root, sls, false) {
		if old := fmt.Sprint(r.Changes.Value("old")); r.Outcome != exec.Succeeded || !strings.HasPrefix(old, "a file of ") {
			t.Errorf("%v: %s, the old content is reported as %s", r.Outcome, r.Comment, old)
		}
	}
	if text, err := os.ReadFile(file); string(text) != "new\n" {
		t.Errorf("the file holds %d bytes, %v", len(text), err)
	}
}

// TestFunctionsRefuseForeignLinks renders templates with functions and filters for a path of ann that leads to a file
// that only root may read.
func TestFunctionsRefuseForeignLinks(t *testing.T) {
	for _, expression := range []string{
		"salt['file.search']('/home/ann/link', 'root')", "salt['file.grep']('/home/ann/link', 'root').stdout",
		"salt['file.grep']('/home/ann/d/f', 'f').stdout",
		"salt['file.grep']('/home/ann/pipe', 'x').stdout", "salt['file.read']('/home/ann/link')",
		"'/home/ann/link'|is_text_file",
		"'/home/ann/d'|list_files|length > 1", "'/home/ann/link'|file_hashsum",
	} {
		t.Run(expression, func(t *testing.T) {
			root := annsHost(t)
			hosttest.Put(t, filepath.Join(root, "states/t.sls"), "/srv/out:\n  file.managed:\n    - contents: \"{{ "+expression+
				" }}\"\n", 0o644)
			h, err := machine.New(host.Options{Root: root})
			if err != nil {
				t.Fatal(err)
			}
			s := families.New(session.Settings{Host: h, ID: "t", Grains: value.NewMap("id", "t", "os_family", "Debian", "kernel",
				"Linux"),
				States: []roots.Env{{Name: "base", Dirs: []string{"/states"}}}})
			p, err := s.Program(t.Context(), s.Named("t"))
			if err != nil {
				return
			}
			s.Run(t.Context(), p, nil)
			data, err := os.ReadFile(filepath.Join(root, "srv/out"))
			if err != nil || strings.TrimSpace(string(data)) != "False" {
				t.Errorf("the template got %q, %v", data, err)
			}
		})
	}
}

// TestScriptsOfUsersDoNotRunAsRoot runs cmd.script with a script that ann can change.
func TestScriptsOfUsersDoNotRunAsRoot(t *testing.T) {
	root := annsHost(t)
	for _, dry := range []bool{true, false} {
		results := runOn(t, root, "run:\n  cmd.script:\n    - name: /home/ann/file\n", dry)
		if r := results[0]; r.Outcome != exec.Failed || !strings.Contains(r.Comment, "root does not run /home/ann/file") {
			t.Errorf("dry %t: %v, %s", dry, r.Outcome, r.Comment)
		}
	}
}
