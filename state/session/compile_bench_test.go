package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/session"
)

// described is the tree of a host with users, templated files, directories, links, packages, commands
// and jobs: 40 users make 159 states, 400 users 879.
func described(users int) map[string]string {
	var accounts, apps strings.Builder
	accounts.WriteString("users:\n")
	for i := 1; i <= users; i++ {
		fmt.Fprintf(&accounts, "  u%04d:\n    uid: %d\n    fullname: User %d\n    shell: %s\n    groups: [%s]\n    key: AAAAC3NzaC1lZDI1NTE5AAAAIGq58euPfTOI9PnVhvZumf1UCA3yxEbw5YZosJwI%04d\n    comment: u%04d@example\n",
			i, 3000+i, i, [...]string{"/bin/sh", "/bin/bash", "/bin/bash"}[i%3], [...]string{"users, games", "users"}[i%2], i, i)
	}
	apps.WriteString("apps:\n")
	for i := 1; i <= 40; i++ {
		fmt.Fprintf(&apps, "  app%02d:\n    port: %d\n    workers: %d\n    debug: %t\n    hosts: [a%d.example.org, b%d.example.org, c%d.example.org]\n    env:\n      LOG_LEVEL: info\n      REGION: eu-%d\n",
			i, 8000+i, i%4+1, i%2 == 1, i, i, i, i%3)
	}
	return map[string]string{
		"pillar/top.sls": "base:\n  '*':\n    - users\n    - apps\n", "pillar/users.sls": accounts.String(), "pillar/apps.sls": apps.String(),
		"states/top.sls":       "base:\n  '*':\n    - base\n    - users\n    - apps\n    - jobs\n",
		"states/base/init.sls": describedBase, "states/users/init.sls": describedUsers, "states/apps/init.sls": describedApps, "states/jobs/init.sls": describedJobs,
	}
}

const (
	describedBase = `{% set root = '/srv/bench' %}
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
    - mode: '0755'
{% for d in range(1, 10) %}
{{ root }}/d{{ d }}:
  file.directory:
    - mode: '0750'
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
	describedUsers = `{% for name, u in salt['pillar.get']('users', {}).items() %}
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
	describedApps = `include:
  - base
{% for name, app in pillar.get('apps', {}).items() %}
/srv/bench/d1/{{ name }}.conf:
  file.managed:
    - source: salt://apps/files/app.conf.j2
    - template: jinja
    - mode: '0640'
    - context:
        name: {{ name }}
        app: {{ app | json }}
    - require:
      - file: /srv/bench/d1
{% endfor %}
`
	describedJobs = `{% for i in range(1, 11) %}
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
    - minute: '{{ i * 7 }}'
    - hour: '{{ i }}'
{% endfor %}
`
)

// compiles compiles what the top file gives, all of it anew each time, and expects so many steps.
func compiles(b *testing.B, files map[string]string, steps int) {
	b.Helper()
	set, _ := settings(b, files)
	b.ReportAllocs()
	for b.Loop() {
		s := session.New(set)
		matches, err := s.Top(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		p, err := s.Program(b.Context(), matches)
		if err != nil {
			b.Fatal(err)
		}
		if len(p.Steps) != steps {
			b.Fatalf("%d steps, want %d", len(p.Steps), steps)
		}
	}
}

func BenchmarkCompile159(b *testing.B) { compiles(b, described(40), 159) }
func BenchmarkCompile879(b *testing.B) { compiles(b, described(400), 879) }

// BenchmarkRequisites compiles states with as many requisites, of each kind: the time for each state
// has to stay the same when there are more.
func BenchmarkRequisites(b *testing.B) {
	for _, kind := range []string{
		"require: [{test: s%[2]d}]", "require: [s%[2]d]", "require_in: [{test: s%[3]d}]", "watch: [{test: s%[2]d}]", "watch_in: [{test: s%[3]d}]",
		"listen: [{test: s%[2]d}]", "listen_in: [{test: s%[3]d}]", "onchanges: [{test: s%[2]d}]", "onfail_in: [{test: s%[3]d}]", "prereq: [{test: s%[3]d}]",
		"use: [{test: s%[2]d}]", "names: [a%[1]d, b%[1]d]", "require: [{test: all}]", "require_in: [{test: all}]", "require: [{sls: first}]",
		"require_in: [{sls: first}]", "require: [{test: nosuch%[1]d}]", "require: [{test: 'fir*'}]",
	} {
		for _, n := range []int{2500, 10000} {
			b.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(with(kind, 1, 3), " ", ""), n), func(b *testing.B) {
				steps := n + 2
				if strings.HasPrefix(kind, "names") {
					steps += n
				}
				compiles(b, related(n, kind), steps)
			})
		}
	}
}

// related is a tree of n states, each with a requisite on the one before or after it, and two more.
func related(n int, kind string) map[string]string {
	var b strings.Builder
	b.WriteString("include: [first]\nall:\n  test.nop: []\n")
	for i := range n {
		fmt.Fprintf(&b, "s%d:\n  test.nop:\n    - name: n%d\n    - x: {{ grains.os }}\n    - %s\n", i, i, with(kind, i, n))
	}
	// The first and the last would name themselves.
	text := strings.NewReplacer("test: s0}]\n", "test: all}]\n", fmt.Sprintf("test: s%d}]\n", n-1), "test: all}]\n", "require: [s0]", "require: [all]").Replace(b.String())
	return map[string]string{"states/top.sls": "base:\n  '*':\n    - many\n", "states/many.sls": text, "states/first.sls": "first:\n  test.nop: []\n"}
}

// with fills the number of a state into a requisite: %[1]d is its own, %[2]d the one before, %[3]d
// the one after.
func with(kind string, i, n int) string {
	return strings.NewReplacer("%[1]d", fmt.Sprint(i), "%[2]d", fmt.Sprint(max(i-1, 0)), "%[3]d", fmt.Sprint(min(i+1, n-1))).Replace(kind)
}
