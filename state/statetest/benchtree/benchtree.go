// Package benchtree generates the same configuration of a host for three programs, so that benchmarks can compare
// them: packages, directories, links, users with a key each, 40 files from a template, commands with a guard and cron
// jobs. Files that do not depend on the number of users are in tree/. Users and applications are generated as data in
// the format of each program.
package benchtree

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

//go:embed tree
var tree embed.FS

// apps is the number of applications, each with a file from a template.
const apps = 40

// States returns the number of states in the Salt tree for a number of users: 159 for 40, 879 for 400.
func States(users int) int { return users*2 + apps + 39 }

// Salt returns the tree for corpus-agent and salt-call: the contents of the files below states/ and pillar/, by path.
func Salt(users int) map[string]string {
	files := static("salt")
	files["pillar/users.sls"], files["pillar/apps.sls"] = userPillar(users), appPillar()
	return files
}

// Ansible returns the tree for ansible-playbook, whose playbook is site.yml. It needs the collection ansible.posix.
func Ansible(users int) map[string]string {
	files := static("ansible")
	files["data.json"] = ansibleData(users)
	return files
}

// Puppet returns the tree for puppet apply, whose manifest is site.pp. It needs the modules cron_core and sshkeys_core.
func Puppet(users int) map[string]string {
	files := static("puppet")
	files["data/common.yaml"] = hiera(users)
	return files
}

// Write writes the trees for a number of users to salt/, ansible/ and puppet/ below dir.
func Write(dir string, users int) error {
	for name, files := range map[string]map[string]string{"salt": Salt(users), "ansible": Ansible(users),
		"puppet": Puppet(users)} {
		for path, text := range files {
			file := filepath.Join(dir, name, path)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// static returns the files of one program that are the same for any number of users. They are part of this program, so
// that reading them cannot fail.
func static(name string) map[string]string {
	files, top := map[string]string{}, "tree/"+name
	err := fs.WalkDir(tree, top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := tree.ReadFile(path)
		files[strings.TrimPrefix(path, top+"/")] = string(text)
		return err
	})
	if err != nil {
		panic(err)
	}
	return files
}

func userPillar(users int) string {
	var b strings.Builder
	b.WriteString("users:\n")
	for _, u := range Users(users) {
		fmt.Fprintf(&b,
			"  %s:\n    uid: %d\n    fullname: %s\n    shell: %s\n    groups: [%s]\n    key: %s\n    comment: %s\n",
			u.Name, u.UID, u.FullName, u.Shell, strings.Join(u.Groups, ", "), u.Key, u.Comment)
	}
	return b.String()
}

func appPillar() string {
	var b strings.Builder
	b.WriteString("apps:\n")
	for _, a := range applications() {
		fmt.Fprintf(&b,
			"  %s:\n    port: %d\n    workers: %d\n    debug: %t\n    hosts: [%s]\n    env:\n      LOG_LEVEL: %s\n"+
				"      REGION: %s\n",
			a.Name, a.Port, a.Workers, a.Debug, strings.Join(a.Hosts, ", "), a.Env["LOG_LEVEL"], a.Env["REGION"])
	}
	return b.String()
}

func ansibleData(users int) string {
	data, err := json.MarshalIndent(map[string]any{"users": Users(users), "apps": applications()}, "", " ")
	if err != nil {
		panic(err) // strings, numbers and lists of them can always be encoded
	}
	return string(data) + "\n"
}

func hiera(users int) string {
	var b strings.Builder
	b.WriteString("users:\n")
	for _, u := range Users(users) {
		fmt.Fprintf(&b, "  %s: {uid: %d, fullname: '%s', shell: %s, groups: [%s], key: '%s', comment: '%s'}\n",
			u.Name, u.UID, u.FullName, u.Shell, strings.Join(u.Groups, ", "), u.Key, u.Comment)
	}
	b.WriteString("apps:\n")
	for _, a := range applications() {
		fmt.Fprintf(&b, "  %s: {port: %d, workers: %d, debug: %t, hosts: [%s], env: {LOG_LEVEL: %s, REGION: %s}}\n",
			a.Name, a.Port, a.Workers, a.Debug, strings.Join(a.Hosts, ", "), a.Env["LOG_LEVEL"], a.Env["REGION"])
	}
	return b.String()
}
