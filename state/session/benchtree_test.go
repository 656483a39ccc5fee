package session_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
)

// tree is a host with a tree of states for it.
type tree struct {
	root   string
	states int
}

// benchTree writes a tree of states of the usual kinds below a root, and the accounts that it is about:
// packages, directories, links, users with a key each, 40 files from a template, commands with a guard,
// cron jobs.
func benchTree(t testing.TB, root string, users int) tree {
	put := func(path, text string) { hosttest.Put(t, filepath.Join(root, path), text, 0o644) }
	put("srv/salt/pillar/top.sls", "base:\n  '*':\n    - users\n    - apps\n")
	put("srv/salt/pillar/users.sls", userPillar(users))
	put("srv/salt/pillar/apps.sls", appPillar())
	put("srv/salt/states/top.sls", "base:\n  '*':\n    - base\n    - users\n    - apps\n    - jobs\n")
	put("srv/salt/states/base/init.sls", baseStates)
	put("srv/salt/states/users/init.sls", userStates)
	put("srv/salt/states/apps/init.sls", appStates)
	put("srv/salt/states/apps/files/app.conf.j2", appTemplate)
	put("srv/salt/states/jobs/init.sls", jobStates)
	put("var/lib/dpkg/status", dpkgStatus())
	put("usr/bin/apt-get", "")
	put("var/spool/cron/crontabs/root", crontab())
	accounts(t, root, users)
	return tree{root, users*2 + 79}
}

// key is the public key of a user, made of a number.
func key(i int) string {
	raw := sha256.Sum256([]byte(fmt.Sprint("key ", i)))
	const kind = "ssh-ed25519"
	b := binary.BigEndian.AppendUint32(nil, uint32(len(kind)))
	b = append(b, kind...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(raw)))
	return base64.StdEncoding.EncodeToString(append(b, raw[:]...))
}

func shell(i int) string {
	if i%3 == 0 {
		return "/bin/sh"
	}
	return "/bin/bash"
}

func groups(i int) []string {
	if i%2 == 0 {
		return []string{"users", "games"}
	}
	return []string{"users"}
}

func userPillar(users int) string {
	var b strings.Builder
	b.WriteString("users:\n")
	for i := 1; i <= users; i++ {
		fmt.Fprintf(&b, "  u%04d:\n    uid: %d\n    fullname: User %d\n    shell: %s\n    groups: [%s]\n    key: %s\n    comment: u%04d@example\n",
			i, 3000+i, i, shell(i), strings.Join(groups(i), ", "), key(i), i)
	}
	return b.String()
}

func appPillar() string {
	var b strings.Builder
	b.WriteString("apps:\n")
	for i := 1; i <= 40; i++ {
		fmt.Fprintf(&b, "  app%02d:\n    port: %d\n    workers: %d\n    debug: %t\n    hosts: [a%d.example.org, b%d.example.org, c%d.example.org]\n    env:\n      LOG_LEVEL: info\n      REGION: eu-%d\n",
			i, 8000+i, i%4+1, i%2 == 1, i, i, i, i%3)
	}
	return b.String()
}

// accounts adds the users to the account files, so that nothing has to make them one by one.
func accounts(t testing.TB, root string, users int) {
	var passwd, group, shadow, plain, games strings.Builder
	passwd.WriteString("root:x:0:0:root:/root:/bin/bash\n")
	shadow.WriteString("root:*:19000:0:99999:7:::\n")
	for i := 1; i <= users; i++ {
		name := fmt.Sprintf("u%04d", i)
		fmt.Fprintf(&passwd, "%s:x:%d:%d:User %d:/home/%s:%s\n", name, 3000+i, 3000+i, i, name, shell(i))
		fmt.Fprintf(&shadow, "%s:!:19000:0:99999:7:::\n", name)
		fmt.Fprintf(&group, "%s:x:%d:\n", name, 3000+i)
		for _, g := range groups(i) {
			if list := map[string]*strings.Builder{"users": &plain, "games": &games}[g]; list.Len() > 0 {
				list.WriteString("," + name)
			} else {
				list.WriteString(name)
			}
		}
		hosttest.Put(t, filepath.Join(root, "home", name, ".profile"), "", 0o644)
	}
	text := "root:x:0:\nusers:x:100:" + plain.String() + "\ngames:x:60:" + games.String() + "\n" + group.String()
	hosttest.Put(t, filepath.Join(root, "etc/passwd"), passwd.String(), 0o644)
	hosttest.Put(t, filepath.Join(root, "etc/group"), text, 0o644)
	hosttest.Put(t, filepath.Join(root, "etc/shadow"), shadow.String(), 0o600)
}

// dpkgStatus is the database of a host with 500 packages.
func dpkgStatus() string {
	var b strings.Builder
	names := []string{"coreutils", "sed", "curl", "git", "cron", "procps"}
	for i := range 500 - len(names) {
		names = append(names, fmt.Sprintf("package-%d", i))
	}
	for i, name := range names {
		fmt.Fprintf(&b, "Package: %s\nStatus: install ok installed\nPriority: optional\nSection: utils\nInstalled-Size: %d\nMaintainer: Somebody <somebody@example.org>\nArchitecture: amd64\nVersion: 1.%d-1\nDepends: libc6 (>= 2.34), libselinux1 (>= 3.1)\nDescription: a package\n It has a long description\n of several lines.\n\n", name, i, i)
	}
	return b.String()
}

// crontab has the jobs already, since not every machine has a crontab(1) to make them with.
func crontab() string {
	text := "# Lines below here are managed by Salt, do not edit\n"
	for i := 1; i < 5; i++ {
		text += fmt.Sprintf("# SALT_CRON_IDENTIFIER:job-%d\n%d %d * * * /usr/bin/true job%d\n", i, i*7, i, i)
	}
	return text
}

const baseStates = `{% set root = '/srv/bench' %}
base-packages:
  pkg.installed:
    - pkgs: [coreutils, sed]

{% for p in ['curl', 'git', 'cron', 'procps'] %}
{{ p }}:
  pkg.installed: []
{% endfor %}

{{ root }}:
  file.directory:
    - user: root
    - group: root
    - mode: '0755'

{% for d in range(1, 10) %}
{{ root }}/d{{ d }}:
  file.directory:
    - mode: '0750'
    - group: users
    - require:
      - file: {{ root }}
{% endfor %}

{% for l in range(1, 11) %}
{{ root }}/link{{ l }}:
  file.symlink:
    - target: {{ root }}/d{{ loop.index % 9 + 1 }}
    - require:
      - file: {{ root }}
{% endfor %}
`

const userStates = `{% for name, u in salt['pillar.get']('users', {}).items() %}
{{ name }}:
  user.present:
    - uid: {{ u.uid }}
    - usergroup: True
    - fullname: {{ u.fullname }}
    - shell: {{ u.shell }}
    - home: /home/{{ name }}
    - createhome: True
    - groups: {{ u.groups | json }}
    - remove_groups: False
  ssh_auth.present:
    - user: {{ name }}
    - enc: ssh-ed25519
    - comment: {{ u.comment }}
    - names:
      - {{ u.key }}
    - require:
      - user: {{ name }}
{% endfor %}
`

const appStates = `include:
  - base

{% for name, app in pillar.get('apps', {}).items() %}
/srv/bench/d1/{{ name }}.conf:
  file.managed:
    - source: salt://apps/files/app.conf.j2
    - template: jinja
    - user: root
    - group: users
    - mode: '0640'
    - context:
        name: {{ name }}
        app: {{ app | json }}
    - require:
      - file: /srv/bench/d1
{% endfor %}
`

const appTemplate = `# managed file for {{ name }}
# host {{ grains['id'] }} family {{ grains['os_family'] }}
[server]
name = {{ name }}
listen = 0.0.0.0:{{ app.port }}
workers = {{ app.workers }}
{%- if app.debug %}
debug = on
{%- else %}
debug = off
{%- endif %}

[upstreams]
{%- for h in app.hosts %}
server{{ loop.index }} = {{ h }}:{{ app.port }}
{%- endfor %}

[env]
{%- for k, v in app.env | dictsort %}
{{ k }} = "{{ v }}"
{%- endfor %}
`

const jobStates = `{% for i in range(1, 11) %}
marker-{{ i }}:
  cmd.run:
    - name: touch /srv/bench/d2/marker{{ i }}
    - unless: test -e /srv/bench/d2/marker{{ i }}
{% endfor %}

{% for i in range(1, 5) %}
job-{{ i }}:
  cron.present:
    - name: /usr/bin/true job{{ i }}
    - identifier: job-{{ i }}
    - user: root
    - minute: '{{ i * 7 }}'
    - hour: '{{ i }}'
{% endfor %}
`
