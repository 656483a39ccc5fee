package attack_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// operation is a state that is tried many times at once, each time in another place. In its lines $P is the place, $N
// its number, and $O a name for this operation in a directory that every user may read.
type operation struct {
	state string   // such as file.managed
	as    string   // the variant; "" for none
	kind  kind     // kind of f before the operation
	name  string   // name of the state; $P/d/f by default
	lines []string // other arguments of the state
	// entered is set if the state starts programs, which do not run below --root.
	entered bool
	// lay creates the other files that the operation needs.
	lay func(w *world, p place)
	// refused is set if the state is also refused without an attack, since ann controls a path that it names.
	refused bool
	// few is the number of tries if the state is too slow for the usual number.
	few int
	// changes are paths in the world that the state may change.
	changes []string
}

func (o operation) String() string {
	if o.as == "" {
		return o.state
	}
	return o.state + " (" + o.as + ")"
}

// sls declares the state for a number of places.
func (o operation) sls(id string, places int) string {
	var b strings.Builder
	for n := range places {
		name := o.name
		if name == "" {
			name = "$P/d/f"
		}
		fmt.Fprintf(&b, "%s-%d:\n  %s:\n", id, n, o.state)
		for _, line := range append([]string{"name: " + name}, o.lines...) {
			fmt.Fprintf(&b, "    - %s\n", line)
		}
	}
	return b.String()
}

// filled replaces the variables in the lines of an SLS file.
func filled(text, p string, n int) string {
	return strings.NewReplacer("$P", p, "$O", fmt.Sprintf("/srv/out/%d", n), "$N", fmt.Sprint(n)).Replace(text)
}

// operations is the table of states. To add one, name the state, what f is, and its arguments.
// TestEveryStateHasAnAttack checks that no state function is without an attack.
func operations() []operation {
	edit := func(state string, lines ...string) operation {
		return operation{state: state, kind: file, lines: lines}
	}
	return []operation{
		{state: "file.managed", as: "over a file", kind: file, lines: []string{"contents: new"}},
		{state: "file.managed", as: "a new file", kind: none, lines: []string{"contents: new"}},
		// The state may write wherever ann's links lead inside the root, but not outside, and gives no file to ann.
		{state: "file.managed", as: "following ann's links", kind: file,
			lines:   []string{"contents: new", "follow_unsafe: true", "show_changes: False"},
			changes: []string{"etc", "home", "f"}},
		{state: "file.managed", as: "of ann", kind: file, lines: []string{"contents: new", "user: ann", "group: ann",
			"mode: '0666'"}},
		{state: "file.managed", as: "a new file of ann", kind: none,
			lines: []string{"contents: new", "user: ann", "mode: '0666'", "makedirs: True", "dir_mode: '0777'"}},
		{state: "file.managed", as: "owner and mode alone", kind: file,
			lines: []string{"replace: False", "user: ann", "group: ann", "mode: '0666'"}},
		{state: "file.managed", as: "backup", kind: file, lines: []string{"contents: new", "backup: minion"}},
		{state: "file.managed", as: "check_cmd", kind: file, lines: []string{"contents: new", "check_cmd: 'true'"},
			entered: true},
		{state: "file.managed", as: "source of ann", kind: file, name: "$O",
			lines: []string{"source: $P/d/f", "mode: '0644'"}, refused: true},
		{state: "file.managed", as: "source of ann for ann", kind: file, name: "$O",
			lines: []string{"source: $P/d/f", "user: ann", "mode: '0644'"}},
		{state: "file.managed", as: "template of ann", kind: file, name: "$O",
			lines: []string{"source: $P/d/f", "template: jinja", "mode: '0644'"}, refused: true},
		{state: "file.managed", as: "file.read in a template", kind: file, name: "$O",
			lines: []string{"contents: {{ salt['file.read']('$P/d/f')|json }}", "mode: '0644'"}},
		edit("file.append", "text: new"),
		{state: "file.append", as: "source of ann", kind: file, name: "$O",
			lines: []string{"source: $P/d/f", "template: ''", "makedirs: True"}, refused: true},
		{state: "file.append", as: "a new file", kind: none, lines: []string{"text: new"}},
		edit("file.prepend", "text: new"),
		edit("file.blockreplace", "content: new", "append_if_not_found: True"),
		edit("file.comment", "regex: ^one"),
		edit("file.uncomment", "regex: two"),
		edit("file.replace", "pattern: one", "repl: three", "backup: .bak"),
		edit("file.line", "content: new", "mode: ensure", "after: one.*"),
		edit("file.keyvalue", "key: one", "value: '3'", "separator: ' = '"),
		{state: "file.patch", kind: file, lines: []string{"source: salt://patch"}, entered: true},
		{state: "file.serialize", kind: file, lines: []string{"dataset: {a: 1}", "serializer: json"}},
		{state: "file.serialize", as: "merged", kind: none,
			lay:   func(w *world, p place) { w.must(os.WriteFile(p.f(), []byte("{}"), 0o644)) },
			lines: []string{"dataset: {a: 1}", "serializer: json", "merge_if_exists: True", "user: ann"}},
		{state: "file.touch", as: "a file", kind: file},
		{state: "file.touch", as: "a new file", kind: none, lines: []string{"makedirs: True"}},
		{state: "file.symlink", as: "forced", kind: file, lines: []string{"target: /srv/in", "force: True", "user: ann",
			"group: ann"}},
		{state: "file.symlink", as: "new", kind: none, lines: []string{"target: /srv/in", "makedirs: True", "user: ann"}},
		{state: "file.symlink", as: "backup", kind: dir, lines: []string{"target: /srv/in", "backupname: $P/d/backup",
			"force: True"}},
		{state: "file.hardlink", as: "of ann's", kind: file, name: "$O", lines: []string{"target: $P/d/f"}},
		{state: "file.hardlink", as: "to ann", kind: none, lines: []string{"target: /srv/in/file", "force: True"}},
		{state: "file.copy", as: "of ann's file", kind: file, name: "$O",
			lines: []string{"source: $P/d/f", "user: ann", "mode: '0644'"}},
		{state: "file.copy", as: "of ann's directory", kind: dir, name: "$O",
			lines: []string{"source: $P/d/f", "user: ann", "mode: '0644'", "dir_mode: '0755'"}},
		{state: "file.copy", as: "preserving", kind: dir, name: "$O", lines: []string{"source: $P/d/f", "preserve: True"}},
		{state: "file.copy", as: "to ann", kind: none, lines: []string{"source: /srv/in/file", "force: True", "user: ann",
			"mode: '0666'"}},
		{state: "file.rename", as: "of ann's", kind: file, name: "$O", lines: []string{"source: $P/d/f"}},
		{state: "file.rename", as: "to ann", kind: none, lines: []string{"source: /srv/in/move-$N", "force: True"},
			lay: func(w *world, p place) {
				w.must(os.WriteFile(filepath.Join(w.dir, "srv/in/move-"+filepath.Base(p.Dir)), []byte("moved\n"), 0o644))
			}},
		{state: "file.absent", as: "a file", kind: file},
		{state: "file.absent", as: "a directory", kind: dir},
		{state: "file.directory", as: "new", kind: none, lines: []string{"user: ann", "group: ann", "mode: '0777'",
			"makedirs: True"}},
		{state: "file.directory", as: "recursively", kind: dir, lines: []string{"user: ann", "group: ann", "dir_mode: '0777'",
			"file_mode: '0666'", "recurse: [user, group, mode]"}},
		{state: "file.directory", as: "clean", kind: dir, lines: []string{"clean: True"}},
		{state: "file.directory", as: "forced", kind: file, lines: []string{"force: True", "user: ann", "mode: '0777'"}},
		{state: "file.directory", as: "backup", kind: file, lines: []string{"backupname: $P/d/backup"}},
		{state: "file.recurse", kind: dir, lines: []string{"source: salt://tree", "user: ann", "file_mode: '0666'",
			"dir_mode: '0777'"}},
		{state: "file.recurse", as: "clean", kind: dir, lines: []string{"source: salt://tree", "clean: True"}},
		{state: "file.recurse", as: "new", kind: none, lines: []string{"source: salt://tree", "user: ann"}},
		{state: "file.tidied", kind: dir, lines: []string{"age: 0", "rmdirs: True", "matches: ['.*']"}},
		{state: "file.tidied", as: "links followed", kind: dir, lines: []string{"age: 0", "rmdirs: True",
			"followlinks: True"}},
		{state: "file.pruned", kind: dir, lines: []string{"recurse: True"}},
		{state: "file.retention_schedule", kind: dir, lines: []string{"retain: {most_recent: 0}"}},
		{state: "file.decode", kind: file, lines: []string{"encoded_data: bmV3Cg=="}},
		{state: "file.cached", kind: file, name: "$P/d/f", lines: []string{"skip_verify: True"}},
		{state: "file.not_cached", kind: file},
		{state: "file.exists", kind: file},
		{state: "file.missing", kind: file, name: "$P/d/none"},
		{state: "ini.options_present", kind: file, lines: []string{"sections: {section: {key: new}}"}},
		{state: "ini.options_absent", kind: file, lines: []string{"sections: {section: [key]}"}},
		{state: "ini.sections_present", kind: file, lines: []string{"sections: [other]"}},
		{state: "ini.sections_absent", kind: file, lines: []string{"sections: [section]"}},
		{state: "archive.extracted", as: "to ann", kind: dir, lines: []string{"source: /srv/in/tree.tar", "user: ann",
			"group: ann", "enforce_toplevel: False", "overwrite: True"}},
		{state: "archive.extracted", as: "clean", kind: dir, lines: []string{"source: /srv/in/tree.tar",
			"enforce_toplevel: False", "clean: True"}},
		{state: "archive.extracted", as: "new", kind: none, lines: []string{"source: /srv/in/tree.tar", "user: ann",
			"enforce_toplevel: False"}},
		{state: "archive.extracted", as: "source of ann", kind: none, name: "$O/",
			lines: []string{"source: $P/d/f", "archive_format: tar", "enforce_toplevel: False"}, refused: true,
			lay: func(w *world, p place) {
				data, err := os.ReadFile(filepath.Join(w.dir, "srv/in/tree.tar"))
				w.must(err)
				w.must(os.WriteFile(p.f(), data, 0o644))
			}},
		{state: "ssh_auth.present", as: "config", kind: file,
			name:  "AAAAC3NzaC1lZDI1NTE5AAAAIJWnz5rSyU8Nm5ZAY5UeyVYMkFkqXqWBgLvp8mJ2mZyW",
			lines: []string{"user: ann", "enc: ssh-ed25519", "config: $P/d/f"}},
		{state: "ssh_auth.present", as: "source of ann", kind: file, name: "ann",
			lines: []string{"user: bob", "config: $O.keys", "source: $P/d/f"}, refused: true, lay: func(w *world, p place) {
				w.must(os.WriteFile(p.f(),
					[]byte("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJWnz5rSyU8Nm5ZAY5UeyVYMkFkqXqWBgLvp8mJ2mZyW ann\n"), 0o644))
			}},
		{state: "ssh_auth.absent", kind: file, name: "AAAAC3NzaC1lZDI1NTE5AAAAIJWnz5rSyU8Nm5ZAY5UeyVYMkFkqXqWBgLvp8mJ2mZyW",
			lines: []string{"user: ann", "enc: ssh-ed25519", "config: $P/d/f"}},
		{state: "ssh_auth.manage", kind: file, lines: []string{"user: ann", "config: $P/d/f",
			"ssh_keys: ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJWnz5rSyU8Nm5ZAY5UeyVYMkFkqXqWBgLvp8mJ2mZyW']"}},
		{state: "ssh_known_hosts.present", kind: file, name: "example.org",
			lines: []string{"user: ann", "config: $P/d/f", "enc: ssh-ed25519",
				"key: AAAAC3NzaC1lZDI1NTE5AAAAIJWnz5rSyU8Nm5ZAY5UeyVYMkFkqXqWBgLvp8mJ2mZyW", "hash_known_hosts: False"}},
		{state: "ssh_known_hosts.absent", kind: file, name: "example.org", lines: []string{"user: ann", "config: $P/d/f"}},
		{state: "cron.file", as: "source of ann", kind: file, name: "$P/d/f", lines: []string{"user: bob"}, refused: true,
			changes: []string{"var/spool"}},
		{state: "mount.fstab_present", kind: file, name: "/dev/none$N",
			lines: []string{"fs_file: /mnt", "fs_vfstype: ext4", "config: $P/d/f", "mount: False"}},
		{state: "mount.fstab_absent", kind: file, name: "/dev/none", lines: []string{"fs_file: /mnt", "config: $P/d/f"}},
		{state: "mount.unmounted", as: "config", kind: file, name: "/mnt",
			lines: []string{"persist: True", "config: $P/d/f"}},
		{state: "virt.keys", kind: dir, name: "keys", lines: []string{"basepath: $P/d"}},
		{state: "debconf.set_file", kind: file, lines: []string{"source: $P/d/f"}, entered: true, refused: true,
			changes: []string{"var"}},
		{state: "cmd.run", as: "in ann's directory", kind: file, name: "'true'",
			lines: []string{"cwd: $P/d", "creates: $P/d/none"}, entered: true},
		{state: "cmd.run", as: "as ann", kind: file, name: "'head -c 4096 f > $P/got; id -u > $P/pwned'",
			lines: []string{"cwd: $P/d", "runas: ann", "timeout: 1"}, entered: true},
		{state: "cmd.script", as: "of ann as ann", kind: file, name: "script-$N",
			lines: []string{"source: $P/d/f", "runas: ann", "shell: /bin/sh"}, entered: true, lay: func(w *world, p place) {
				w.must(os.WriteFile(p.f(), []byte("true\n"), 0o644))
			}},
		{state: "cmd.script", as: "root's as ann", kind: file, name: "script-$N",
			lines: []string{"source: salt://script", "cwd: $P/d", "runas: ann"}, entered: true},
		{state: "cmd.script", as: "root's in ann's directory", kind: file, name: "script-$N",
			lines: []string{"source: salt://true", "cwd: $P/d", "creates: $P/d/none"}, entered: true},
		{state: "pip.installed", as: "as ann", kind: file, name: "x",
			lines: []string{"bin_env: /srv/in/pip3", "user: ann", "cwd: $P/d", "requirements: $P/d/f"}, entered: true},
		{state: "pip.installed", as: "in ann's directory", kind: file, name: "x",
			lines: []string{"bin_env: /srv/in/pip3", "cwd: $P/d", "requirements: salt://patch"}, entered: true},
		{state: "virtualenv.managed", as: "ann's", kind: none, lines: []string{"venv_bin: /srv/in/virtualenv",
			"python: /srv/in/pip3"}, entered: true},
		{state: "gem.installed", as: "as ann", kind: file, name: "x",
			lines: []string{"gem_bin: /srv/in/gem", "user: ann", "source: 'https://u:p@h.example/'"}, entered: true},
		{state: "npm.installed", as: "in ann's directory", kind: dir, few: 2, name: "/srv/in/package",
			lines: []string{"dir: $P/d/f"}, entered: true, lay: func(w *world, p place) {
				w.must(os.WriteFile(filepath.Join(p.f(), "package.json"),
					[]byte(`{"scripts": {"preinstall": "id -u >pwned-npm", "postinstall": "id -u >pwned-npm"}}`), 0o644))
			}},
		{state: "npm.bootstrap", as: "ann's", kind: dir, lines: []string{"user: ann"}, entered: true,
			lay: func(w *world, p place) {
				w.must(os.WriteFile(filepath.Join(p.f(), "package.json"), []byte("{}"), 0o644))
			}},
		{state: "file.managed", as: "setuid", kind: file, lines: []string{"replace: False", "user: root", "mode: '4755'"},
			refused: true},
		{state: "file.managed", as: "setuid, with content", kind: file,
			lines: []string{"contents: new", "user: root", "mode: '4755'"}, refused: true},
		{state: "file.directory", as: "setuid", kind: dir, lines: []string{"user: root", "file_mode: '4755'",
			"recurse: [user, mode]"}, refused: true},
		{state: "file.recurse", as: "setuid", kind: dir, lines: []string{"source: salt://tree", "user: root",
			"file_mode: '4755'"}, refused: true},
		{state: "user.present", as: "home of ann's", kind: none, name: "new$N",
			lines: []string{"home: $P/d/f", "createhome: True", "usergroup: True"}, entered: true,
			changes: accountFiles},
		{state: "user.absent", as: "purge", kind: dir, name: "old$N", lines: []string{"purge: True"}, entered: true,
			refused: true, changes: accountFiles, lay: func(w *world, p place) {
				n := filepath.Base(p.Dir)
				passwd, err := os.OpenFile(filepath.Join(w.dir, "etc/passwd"), os.O_APPEND|os.O_WRONLY, 0)
				w.must(err)
				defer passwd.Close()
				_, err = fmt.Fprintf(passwd, "old%s:x:%d:%d::/home/ann/%s/d/f:/bin/sh\n", n, ann, ann, n)
				w.must(err)
			}},
		{state: "git.cloned", kind: none, lines: []string{"target: $P/d/f"}, name: "/srv/in/repo.git", entered: true,
			refused: true},
		{state: "git.latest", as: "new", kind: none, name: "/srv/in/repo.git", lines: []string{"target: $P/d/f", "rev: main"},
			entered: true, refused: true},
		{state: "git.latest", as: "as ann", kind: none, name: "/srv/in/repo.git",
			lines: []string{"target: $P/d/f", "rev: main", "user: ann"}, entered: true, refused: true},
		{state: "git.latest", as: "a clone of ann's with programs", kind: none, name: "/srv/in/repo.git",
			lines: []string{"target: $P/d/f", "rev: main", "force_reset: True", "force_checkout: True"}, entered: true,
			lay: layHostileClone},
		{state: "git.detached", as: "a clone of ann's with programs", kind: none, name: "/srv/in/repo.git",
			lines: []string{"target: $P/d/f", "rev: main", "hard_reset: True"}, entered: true, lay: layHostileClone},
		{state: "git.config_set", as: "a clone of ann's with programs", kind: none, name: "user.name",
			lines: []string{"repo: $P/d/f", "value: new"}, entered: true, lay: layHostileClone},
		{state: "git.config_unset", as: "a clone of ann's with programs", kind: none, name: "user.name",
			lines: []string{"repo: $P/d/f"}, entered: true, lay: layHostileClone},
		{state: "git.present", kind: none, entered: true},
	}
}

var accountFiles = []string{"etc", "home"}

// harmless are state functions without an attack, with the reason: they touch no path that another user controls, or
// another test attacks them.
func harmless() map[string]string {
	return map[string]string{
		"pkg": "the package manager writes; its paths are root's", "pkgrepo": "writes below /etc alone",
		"service": "asks the init system", "test": "touches nothing", "stateconf": "touches nothing",
		"environ": "sets variables of the run", "event": "runs the program of agent.yaml",
		"grains": "writes /etc/corpus/grains.yaml",
		"guest":  "writes below directories of root's, and into guests that have not run",
		"group":  "writes /etc/group", "user.present": "", "alias": "writes /etc/aliases", "host": "writes /etc/hosts",
		"pdbedit": "asks Samba", "alternatives": "links below /etc/alternatives, made by the system's own program",
		"firewalld": "asks a daemon", "iptables": "asks the kernel", "kmod": "asks the kernel", "locale": "writes below /etc",
		"lvm": "asks the kernel", "network": "writes below /etc",
		"selinux": "asks the kernel", "sysctl": "asks the kernel first, which a test must not",
		"timezone": "writes below /etc",
		"module":   "calls functions", "apache_conf": "links below /etc/apache2", "apache_module": "links below /etc/apache2",
		"apache_site":      "links below /etc/apache2",
		"docker_container": "asks a daemon", "docker_image": "asks a daemon", "docker_network": "asks a daemon",
		"docker_volume": "asks a daemon",
		"gem":           "runs the language's own program", "npm": "runs the language's own program",
		"pecl": "runs the language's own program", "pip": "as pip.installed",
		"virtualenv": "runs the language's own program", "supervisord": "runs its own program",
		"rabbitmq_cluster": "asks a server", "rabbitmq_upstream": "asks a server", "rabbitmq_plugin": "asks a server",
		"rabbitmq_policy": "asks a server", "rabbitmq_user": "asks a server", "rabbitmq_vhost": "asks a server",
		"ldap":         "asks a server",
		"mongodb_user": "asks a server", "mysql_database": "asks a server", "mysql_grants": "asks a server",
		"mysql_query": "asks a server", "mysql_user": "asks a server",
		"postgres_database": "asks a server", "postgres_extension": "asks a server", "postgres_group": "asks a server",
		"postgres_language":   "asks a server",
		"postgres_privileges": "asks a server", "postgres_schema": "asks a server", "postgres_tablespace": "asks a server",
		"postgres_user":    "asks a server",
		"file.accumulated": "touches nothing", "file.mknod": "mknod gets no path that a user controls",
		"mount.mounted": "a mount changes the machine under the world",
		"mount.swap":    "a mount changes the machine under the world",
		"cmd.wait":      "as cmd.run", "cmd.watch": "as cmd.run", "cmd.wait_script": "as cmd.script",
		"cron.present": "the table is root's, in a directory of root's", "cron.absent": "the table is root's",
		"cron.env_present": "the table is root's", "cron.env_absent": "the table is root's",
		"debconf.set": "asks debconf", "ssh_auth.absent": "",
	}
}
